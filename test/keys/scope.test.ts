import { stock } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { graphqlThrice } from '../support/graphql.ts';
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

  test('may not create, and nothing is created', async () => {
    expect(await face.create(store, { name: 'Rex', categoryId: 1 }, readKey)).toEqual(forbidden);
    expect(await face.list(store, {})).toEqual({ data: [expect.anything(), expect.anything()] });
  });
});

describe('on REST the scope is judged before the body is looked at', () => {
  test.each<[string, { body?: string; headers?: Record<string, string> }]>([
    ['no body', {}],
    ['no JSON', { body: '{"name":' }],
    ['invalid values', { body: '{"name":1}' }],
    ['a body that is too large', { body: `{"name":"${'x'.repeat(2_000_000)}"}` }],
    ['a media type that is not taken', { body: '<pet/>', headers: { 'content-type': 'application/xml' } }],
    ['a compressed body', { body: 'x', headers: { 'content-encoding': 'gzip' } }],
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
    const operationName = query.includes('mutation B') ? 'B' : undefined;
    const { data, errors } = await graphqlThrice(store, { query, operationName }, readKey);
    expect(data ?? null).toBeNull();
    const extensions = { code: 'FORBIDDEN', status: 403 };
    expect(errors).toEqual([expect.objectContaining({ message: forbidden.message, extensions })]);
  });
});
