import { stock } from '../support/database-access.ts';
import { send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * The edge table of values in GraphQL, as literals, as variables of a POST and of a GET. Everything is asked three
 * times: the second time an operation is compiled, and no answer may depend on that.
 */

const store = storeForAll();
beforeEach(() => store.empty());

/** Asks by POST with the variables as JSON text. @returns the one answer, as text */
async function ask(query: string, variables = '{}'): Promise<string> {
  return thrice(() =>
    send(store.origin, {
      method: 'POST',
      path: '/graphql',
      headers: { authorization: `Bearer ${store.key}`, 'content-type': 'application/json' },
      body: `{"query":${JSON.stringify(query)},"variables":${variables}}`,
    }),
  );
}

async function askByGet(query: string, variables: string): Promise<string> {
  const path = `/graphql?${new URLSearchParams({ query, variables })}`;
  const headers = { authorization: `Bearer ${store.key}`, 'apollo-require-preflight': '1' };
  return thrice(() => send(store.origin, { path, headers }));
}

async function thrice(request: () => Promise<{ text: string }>): Promise<string> {
  const answers = [await request(), await request(), await request()].map(({ text }) => text.trim());
  expect(new Set(answers).size).toBe(1);
  return answers[0] ?? '';
}

const after = 'query ($after: ID) { pets(after: $after) { id } }';
const afterOf = (literal: string) => `{ pets(after: ${literal}) { id } }`;
const none = '{"data":{"pets":[]}}';
const rule = 'after must be an integer between -9223372036854775808 and 9223372036854775807.';
const messageOf = (answer: string) => JSON.parse(answer).errors?.[0].message;
const extensionsOf = (answer: string) => JSON.parse(answer).errors?.[0].extensions;
const refusal = { code: 'BAD_USER_INPUT', status: 400 };

describe('an ID', () => {
  test.each(['0', '5', '9007199254740993', '9223372036854775807', '"5"', '"9223372036854775807"'])(
    '%s is one as a literal and as a variable, by POST and by GET',
    async (value) => {
      for (const answer of [
        await ask(afterOf(value)),
        await ask(after, `{"after":${value}}`),
        await askByGet(after, `{"after":${value}}`),
      ]) {
        expect(answer).toBe(none);
      }
    },
  );

  test('-0 is 0, as a literal and as a variable, by POST and by GET', async () => {
    expect(await ask(afterOf('-0'))).toBe(none);
    expect(await ask(after, '{"after":-0}')).toBe(none);
    expect(await askByGet(after, '{"after":-0}')).toBe(none);
    expect(await ask('{ pet(id: -0) { id } }')).toBe('{"data":{"pet":null}}');
    for (const categoryId of ['-0', '0', '"0"']) {
      const create = `mutation { createPet(input: { name: "Rex", categoryId: ${categoryId} }) { categoryId } }`;
      expect(await ask(create)).toBe('{"data":{"createPet":{"categoryId":"0"}}}');
    }
  });

  test.each(['9223372036854775808', '-9223372036854775809', `1${'0'.repeat(50)}`, '"rex"', '""', '"007"', '"1e3"'])(
    '%s is refused by the service, however it comes',
    async (value) => {
      for (const answer of [
        await ask(afterOf(value)),
        await ask(after, `{"after":${value}}`),
        await askByGet(after, `{"after":${value}}`),
      ]) {
        expect([messageOf(answer), extensionsOf(answer)]).toEqual([rule, refusal]);
      }
    },
  );

  test.each(['1.5', 'true', '[]', '{}', '["5"]', '1e400', '9007199254740993.5'])(
    '%s is refused by its type',
    async (value) => {
      for (const answer of [await ask(after, `{"after":${value}}`), await askByGet(after, `{"after":${value}}`)]) {
        expect(messageOf(answer)).toMatch(/^Variable "\$after" got invalid value .+ID cannot represent value/s);
        expect(extensionsOf(answer)).toEqual(refusal);
      }
    },
  );

  test.each([
    ['9007199254740993.5', '9007199254740993.5'],
    ['1e400', '1e400'],
    ['{}', '{}'],
  ])('%s is shown as it was written', async (value, shown) => {
    const message = `Variable "$after" got invalid value ${shown}; ID cannot represent value: ${shown}. It must be a string, or an integer in plain digits.`;
    expect(messageOf(await ask(after, `{"after":${value}}`))).toBe(message);
    expect(messageOf(await askByGet(after, `{"after":${value}}`))).toBe(message);
  });

  test('as JSON 5.0 or 1e3 is the whole number', async () => {
    for (const value of ['5.0', '1e3', '9007199254740993.0']) {
      expect(await ask(after, `{"after":${value}}`)).toBe(none);
      expect(await askByGet(after, `{"after":${value}}`)).toBe(none);
    }
  });

  test('null or absent is none', async () => {
    for (const variables of ['{"after":null}', '{}', '{"other":1}']) {
      expect(await ask(after, variables)).toBe(none);
      expect(await askByGet(after, variables)).toBe(none);
    }
  });

  test.each([
    ['9007199254740992', '9007199254740993'],
    ['-9223372036854775808', '-9223372036854775807'],
    ['9223372036854775806', '9223372036854775807'],
  ])('%s is not its neighbour %s', async (id, neighbour) => {
    await store.database.rows(
      { name: 'insert', text: `insert into pet (id, name, category_id, status) values ($1, 'Rex', $1, 'sold')` },
      [neighbour],
    );
    const found = `{"data":{"pets":[{"id":"${neighbour}","categoryId":"${neighbour}"}]}}`;
    const query = 'query ($after: ID) { pets(after: $after) { id categoryId } }';
    for (const value of [id, `"${id}"`]) {
      for (const answer of [
        await ask(query, `{"after":${value}}`),
        await askByGet(query, `{"after":${value}}`),
        await ask(`{ pets(after: ${value}) { id categoryId } }`),
      ]) {
        expect(answer).toBe(found);
      }
      expect(await ask('query ($id: ID!) { pet(id: $id) { id } }', `{"id":${value}}`)).toBe('{"data":{"pet":null}}');
    }
  });
});

describe('an Int', () => {
  const limit = 'query ($limit: Int) { pets(limit: $limit) { id } }';

  test.each(['1', '100', '1e1', '5.0', 'null'])('%s is one', async (value) => {
    expect(await ask(limit, `{"limit":${value}}`)).toBe(none);
    expect(await askByGet(limit, `{"limit":${value}}`)).toBe(none);
  });

  test.each(['1.5', '"5"', 'true', '[1]', '{}', '2147483648', '9007199254740993', '9223372036854775808', '1e400'])(
    '%s is refused by its type',
    async (value) => {
      for (const answer of [await ask(limit, `{"limit":${value}}`), await askByGet(limit, `{"limit":${value}}`)]) {
        expect(messageOf(answer)).toMatch(/^Variable "\$limit" got invalid value .+Int cannot represent/s);
        expect(extensionsOf(answer)).toEqual(refusal);
      }
    },
  );
});

describe('an input', () => {
  const create = 'mutation ($input: NewPet!) { createPet(input: $input) { name categoryId status } }';

  test.each(['9007199254740993', '9223372036854775807', '-9223372036854775808', '"9007199254740993"'])(
    'keeps the category %s, inside an input object and as a variable of its own',
    async (value) => {
      const kept = `{"data":{"createPet":{"name":"Rex","categoryId":"${value.replaceAll('"', '')}","status":"available"}}}`;
      expect(await ask(create, `{"input":{"name":"Rex","categoryId":${value}}}`)).toBe(kept);
      const apart = create
        .replace('$input: NewPet!', '$id: ID!')
        .replace('$input)', '{ name: "Rex", categoryId: $id })');
      expect(await ask(apart, `{"id":${value}}`)).toBe(kept);
      expect(
        await ask(create.replace('($input: NewPet!)', '').replace('$input', `{ name: "Rex", categoryId: ${value} }`)),
      ).toBe(kept);
      expect((await rest(store, '/v1/pets')).json).toHaveLength(9);
    },
  );

  test.each([
    ['{}', /Field "name" of required type "String!" was not provided/],
    ['{"name":"Rex"}', /Field "categoryId" of required type "ID!" was not provided/],
    ['{"name":5,"categoryId":1}', /String cannot represent a non string value: 5/],
    ['{"name":9007199254740993,"categoryId":1}', /String cannot represent a non string value: 9007199254740993/],
    ['{"name":"Rex","categoryId":1.5}', /ID cannot represent value: 1\.5/],
    [
      '{"name":"Rex","categoryId":1,"status":"SOLD"}',
      /Value "SOLD" does not exist in "PetStatus" enum\. Did you mean the enum value "sold"\?$/,
    ],
    ['{"name":"Rex","categoryId":1,"status":null}', /Expected non-nullable type "PetStatus!" not to be null/],
    ['{"name":"Rex","categoryId":1,"id":5}', /Field "id" is not defined by type "NewPet"/],
    ['[]', /Field "name" of required type "String!" was not provided|Expected type "NewPet" to be an object/],
    ['null', /Variable "\$input" of non-null type "NewPet!" must not be null/],
  ])('%s is refused by its type', async (input, message) => {
    const answer = await ask(create, `{"input":${input}}`);
    expect([messageOf(answer), extensionsOf(answer)]).toEqual([expect.stringMatching(message), refusal]);
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

// The type of such a variable allows null, and its default makes it fit: that it does not is found when the operation
// is executed.
describe('a variable with a default that is null where null cannot be is refused:', () => {
  beforeEach(() => stock(store.database, 1));
  const needsNoNull = (argument: string, type: string) =>
    `Argument "${argument}" of non-null type "${type}!" must not be null.`;

  test.each([
    ['@include', 'query ($a: Boolean = true) { pets @include(if: $a) { id } }', needsNoNull('if', 'Boolean')],
    ['@skip', 'query ($a: Boolean = true) { pets @skip(if: $a) { id } }', needsNoNull('if', 'Boolean')],
    [
      '@include on a field',
      'query ($a: Boolean = true) { pets { id @include(if: $a) } }',
      needsNoNull('if', 'Boolean'),
    ],
    [
      '@include on a fragment',
      'query ($a: Boolean = true) { pets { ... @include(if: $a) { id } } }',
      needsNoNull('if', 'Boolean'),
    ],
    ['an argument', 'query ($a: ID = 1) { pet(id: $a) { id } }', needsNoNull('id', 'ID')],
    [
      'an argument of introspection',
      'query ($a: String = "Pet") { __type(name: $a) { name } }',
      needsNoNull('name', 'String'),
    ],
    [
      'a field of an input',
      'mutation ($a: ID = 1) { createPet(input: { name: "Rex", categoryId: $a }) { id } }',
      'Argument "input" has invalid value {name: "Rex", categoryId: $a}.',
    ],
    [
      'a field of an input with a default of its own',
      'mutation ($a: PetStatus = sold) { createPet(input: { name: "Rex", categoryId: 1, status: $a }) { id } }',
      'Argument "input" has invalid value {name: "Rex", categoryId: 1, status: $a}.',
    ],
  ])('%s', async (_where, query, message) => {
    const answer = await ask(query, '{"a":null}');
    expect([messageOf(answer), extensionsOf(answer)]).toEqual([message, refusal]);
    expect((await rest(store, '/v1/pets')).json).toHaveLength(1);
  });
});
