import { getIntrospectionQuery } from 'graphql';
import { graphqlText } from '../support/graphql.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, type Store, startNode, startStore } from '../support/store.ts';

/** GRAPHQL_INTROSPECTION=false: nothing tells the names of the schema. */
let store: Store;
let closed: ServiceNode;
beforeAll(async () => {
  store = await startStore();
  closed = await startNode(store, { GRAPHQL_INTROSPECTION: 'false' });
});
afterAll(async () => {
  await closed.close();
  await store.close();
});

test.each([
  ['the standard query', getIntrospectionQuery()],
  ['__schema', '{ __schema { queryType { name } } }'],
  ['__type', '{ __type(name: "Pet") { name } }'],
  ['by an alias', '{ typename: __schema { queryType { name } } }'],
  ['in a fragment', '{ ...F } fragment F on Query { __schema { queryType { name } } }'],
  ['in inline fragments', '{ ... { ... on Query { __schema { queryType { name } } } } }'],
  ['on a mutation', 'mutation { __schema { queryType { name } } }'],
  ['beside other fields', '{ pets { id } __schema { queryType { name } } }'],
  ['with strange blanks', '{\u00a0__schema\u2028{queryType{name}}}'],
  ['with a byte order mark and commas', '\ufeff{,,,__schema,,,{,queryType,{,name,},},}'],
])('introspection %s is refused', async (_how, query) => {
  for (let time = 0; time < 3; time += 1) {
    const { data, errors } = await graphqlText(closed, { query });
    expect(data ?? null).toBeNull();
    expect(errors?.length).toBeGreaterThan(0);
    for (const { message } of errors ?? [])
      expect(message).toMatch(/^(?:GraphQL introspection has been disabled|Syntax Error|Cannot query)/);
  }
});

test('__typename stays: clients need it', async () => {
  expect(await graphqlText(closed, { query: '{ __typename }' })).toMatchObject({ data: { __typename: 'Query' } });
});

const input = 'mutation ($input: NewPet!) { createPet(input: $input) { id } }';

describe('no message suggests a name:', () => {
  test.each<[string, string, unknown, string]>([
    ['a field', '{ petz { id } }', {}, 'pets'],
    ['a field of a type', '{ pets { nam } }', {}, 'name'],
    ['a mutation', 'mutation { createPett(input: {}) { id } }', {}, 'createPet"'],
    ['an argument', '{ pets(statu: sold) { id } }', {}, '"status"'],
    ['an enum value', '{ pets(status: sol) { id } }', {}, 'sold'],
    [
      'an input field',
      'mutation { createPet(input: { name: "x", categoryId: 1, statu: sold }) { id } }',
      {},
      '"status"',
    ],
    ['a type', 'query ($s: PetStatu) { pets(status: $s) { id } }', {}, 'PetStatus"'],
    ['a type condition', '{ ... on Querry { pets { id } } }', {}, '"Query"'],
    ['a directive', '{ pets @skp(if: true) { id } }', {}, '@skip'],
    ['an enum value in a variable', 'query ($s: PetStatus) { pets(status: $s) { id } }', { s: 'sol' }, 'sold'],
    ['an input field in a variable', input, { input: { name: 'x', categoryId: 1, statu: 'sold' } }, '"status"'],
    [
      'two input fields in a variable',
      input,
      { input: { name: 'x', categoryId: 1, categoryI: 1, nam: 1 } },
      'Did you mean',
    ],
  ])('%s', async (_what, query, variables, secret) => {
    for (let time = 0; time < 3; time += 1) {
      const { data, errors = [] } = await graphqlText(closed, { query, variables });
      expect(data ?? null).toBeNull();
      expect(errors.length).toBeGreaterThan(0);
      const messages = errors.map(({ message }) => message).join('\n');
      expect(messages).not.toMatch(/did you mean/i);
      expect(messages).not.toContain(secret);
    }
  });

  test('where introspection is open they are of help', async () => {
    const { errors = [] } = await graphqlText(store, { query: '{ petz { id } }' });
    expect(errors[0]?.message).toMatch(/Did you mean .*"pets"/);
  });
});
