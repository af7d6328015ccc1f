import { graphqlText } from '../../support/graphql.ts';
import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * Bodies that are cheap to send and expensive to process. Each gets its error
 * code and leaves nothing behind.
 */
const store = storeForAll();
afterEach(async () => {
  await store.empty();
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const zeros = '0'.repeat(900_000);
const nines = '9'.repeat(900_000);
const members = (count: number, value: string) =>
  Array.from({ length: count }, (_, at) => `"m${at}":${value}`).join(',');
const animal = (more: string) => `{"name":"Rex","categoryId":1${more}}`;
const category = (digits: string) => `{"name":"Rex","categoryId":${digits}}`;

describe('on REST', () => {
  test.each<[string, number, string]>([
    ['400,000 nested arrays', 400, deep(400_000)],
    ['400,000 nested arrays in a member', 400, animal(`,"x":${deep(400_000)}`)],
    ['19,000 nested arrays in a member', 201, animal(`,"x":${deep(19_000)}`)],
    ['arrays that never end', 400, '['.repeat(900_000)],
    ['4,000 members with exponents', 201, animal(`,${members(4000, '1e3')}`)],
    [
      '60,000 members with exponents',
      400,
      animal(`,${members(60_000, '1e3')}`),
    ],
    [
      'the same member 19,000 times',
      201,
      animal(',"categoryId":7'.repeat(19_000)),
    ],
    ['900,000 digits', 400, category(nines)],
    ['900,000 zeros after the point', 201, category(`1.${zeros}`)],
    [
      'zeros and ones in turns',
      400,
      category(`1.${`${'0'.repeat(999)}1`.repeat(900)}`),
    ],
    ['900,000 zeros before the point', 400, category(`1${zeros}`)],
    ['an exponent of 900,000 digits', 400, category(`1e${nines}`)],
    [
      'a name of 1,000 characters by escapes',
      201,
      `{"name":"${'\\u00e4'.repeat(1000)}","categoryId":1}`,
    ],
    [
      'a name of 150,000 escapes',
      400,
      `{"name":"${'\\u00e4'.repeat(150_000)}","categoryId":1}`,
    ],
    [
      '__proto__ beside nested arrays',
      201,
      animal(`,"z":{"__proto__":{}},"x":${deep(19_000)}`),
    ],
  ])('%s: %i', async (_what, expected, body) => {
    expect(
      (await rest(store, '/v1/pets', { method: 'POST', body })).status,
    ).toBe(expected);
  });
});

describe('on GraphQL', () => {
  const create =
    'mutation ($input: NewPet!) { createPet(input: $input) { id } }';
  const find = 'query ($id: ID!) { pet(id: $id) { id } }';
  const list =
    'query ($limit: Int, $status: PetStatus) { pets(limit: $limit, status: $status) { id } }';
  const fields = (count: number) => `{"input":{${members(count, '1')}}}`;
  const lines = '\n  '.repeat(200_000);
  const long = 'b'.repeat(800_000);
  const wrong = Array.from(
    { length: 45 },
    (_, at) => `a${at}: pets(limit: $v${at}) { id }`,
  );
  const request = (query: string, variables: string) =>
    `{"query":${JSON.stringify(query)},"variables":${variables}}`;

  test.each<[string, string | undefined, string]>([
    [
      'nested arrays as an id',
      'BAD_USER_INPUT',
      request(find, `{"id":${deep(400_000)}}`),
    ],
    [
      'nested arrays as an unknown variable',
      undefined,
      request('{ __typename }', `{"x":${deep(19_000)}}`),
    ],
    [
      'more nested arrays as an unknown variable',
      'BAD_USER_INPUT',
      request('{ __typename }', `{"x":${deep(400_000)}}`),
    ],
    [
      'nested arrays as variables',
      'BAD_USER_INPUT',
      request('{ __typename }', deep(400_000)),
    ],
    [
      'nested arrays as extensions',
      undefined,
      `{"query":"{ __typename }","extensions":{"x":${deep(19_000)}}}`,
    ],
    [
      '900,000 digits as an id',
      'BAD_USER_INPUT',
      request(find, `{"id":${nines}}`),
    ],
    [
      '300 digits as an id',
      undefined,
      request(find, `{"id":${'9'.repeat(300)}}`),
    ],
    [
      'zeros as a limit',
      'BAD_USER_INPUT',
      request(list, `{"limit":1.${zeros}1}`),
    ],
    [
      'a status of 900,000 characters',
      'BAD_USER_INPUT',
      request(list, `{"status":"${'s'.repeat(900_000)}"}`),
    ],
    [
      '40,000 unknown input fields',
      'BAD_USER_INPUT',
      request(create, fields(40_000)),
    ],
    [
      'a field of 900,000 characters',
      'GRAPHQL_VALIDATION_FAILED',
      request(`{ ${'a'.repeat(900_000)} }`, '{}'),
    ],
    [
      'a literal of 900,000 digits',
      'GRAPHQL_VALIDATION_FAILED',
      request(`{ pets(limit: ${nines}) { id } }`, '{}'),
    ],
    [
      'a comment of 900,000 characters',
      undefined,
      request(`{ __typename } #${'x'.repeat(900_000)}`, '{}'),
    ],
    [
      'a block string of 200,000 lines',
      'BAD_USER_INPUT',
      request(`{ pets(after: """${lines}""") { id } }`, '{}'),
    ],
    [
      'a long name in many errors',
      'GRAPHQL_VALIDATION_FAILED',
      request(`query ${long} { ${wrong.join(' ')} }`, '{}'),
    ],
  ])('%s: %s, in a response of limited size', async (_what, code, body) => {
    for (let time = 0; time < 2; time += 1) {
      const { errors, text } = await graphqlText(store, body);
      expect(errors?.[0]?.extensions.code).toBe(code);
      // Messages quote the request: a hundred of them must not multiply its
      // size.
      expect(text.length).toBeLessThan(200_000);
    }
  });
});
