import { stock } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

let readKey: string;
const store = storeForAll({}, async () => {
  readKey = (await store.keys.issue({ name: 'frontend', scope: 'read' })).key;
  await stock(store.database, 2);
});

const forbidden = { code: 'FORBIDDEN', status: 403, message: 'This needs an API key with the scope "write".' };

describe.each(faces)('through $name, a key with the scope read', (face) => {
  test('lists and finds', async () => {
    const list = await face.list(store, {}, readKey);
    expect(list).toEqual({ data: [expect.anything(), expect.anything()] });
    expect(await face.find(store, '1', readKey)).toEqual({ data: expect.objectContaining({ id: '1' }) });
  });

  test.each([[{ name: 'Rex', categoryId: 1 }], [{ name: 'Rex', categoryId: 1, status: 'sold' }]])(
    'may not create %j, and nothing is created',
    async (newPet) => {
      expect(await face.create(store, newPet, readKey)).toEqual(forbidden);
      expect(await face.list(store, {})).toEqual({ data: [expect.anything(), expect.anything()] });
    },
  );
});

describe('on REST the scope is judged before the body is looked at', () => {
  test.each<[string, { body?: string; headers?: Record<string, string> }]>([
    ['no body', {}],
    ['an empty body', { body: '' }],
    ['no JSON', { body: '{"name":' }],
    ['invalid values', { body: '{"name":1}' }],
    ['a body that is too large', { body: `{"name":"${'x'.repeat(2_000_000)}"}` }],
    ['a media type that is not taken', { body: '<pet/>', headers: { 'content-type': 'application/xml' } }],
    ['no media type', { body: '{}', headers: { 'content-type': '' } }],
    ['a charset that is not taken', { body: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } }],
    ['a compressed body', { body: 'x', headers: { 'content-encoding': 'gzip' } }],
    ['a poisoned body', { body: '{"__proto__":{}}' }],
  ])('%s is 403', async (_what, { body, headers = {} }) => {
    const { status, json } = await rest(store, '/v1/pets', { method: 'POST', body, headers, key: readKey });
    expect({ status, json }).toEqual({ status: 403, json: forbidden });
  });
});

test('what is not possible at all is 405 for it, too', async () => {
  expect((await rest(store, '/v1/pets/1', { method: 'POST', key: readKey })).status).toBe(405);
});

describe('on GraphQL', () => {
  test.each([
    ['first', 'mutation { createPet(input: { name: "a", categoryId: 1 }) { id } }'],
    ['by an alias', 'mutation { pets: createPet(input: { name: "a", categoryId: 1 }) { id } }'],
    [
      'in a fragment',
      'mutation { ...F } fragment F on Mutation { createPet(input: { name: "a", categoryId: 1 }) { id } }',
    ],
    [
      'with values that are refused later',
      'mutation { createPet(input: { name: "\\u0000", categoryId: "x" }) { id } }',
    ],
    [
      'as one of several operations',
      'query A { __typename } mutation B { createPet(input: { name: "a", categoryId: 1 }) { id } }',
    ],
  ])('a mutation %s is FORBIDDEN, compiled or not', async (_how, query) => {
    for (let time = 0; time < 3; time += 1) {
      const operationName = query.includes('mutation B') ? 'B' : undefined;
      const { data, errors } = await graphqlText(store, { query, operationName }, readKey);
      expect(data ?? null).toBeNull();
      expect(errors).toEqual([
        expect.objectContaining({
          message: forbidden.message,
          extensions: { code: 'FORBIDDEN', status: 403 },
        }),
      ]);
    }
  });

  test('all of several creations are refused', async () => {
    const query = `mutation { ${[1, 2, 3].map((n) => `a${n}: createPet(input: {name: "a", categoryId: ${n}}) { id }`).join(' ')} }`;
    const { data } = await graphqlText(store, { query }, readKey);
    expect(data ?? null).toBeNull();
    expect(await faces[0]?.list(store, {})).toEqual({ data: [expect.anything(), expect.anything()] });
  });
});
