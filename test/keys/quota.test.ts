import { getIntrospectionQuery } from 'graphql';
import { sql, stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import type { HttpResponse } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { type Store, storeForAll } from '../support/store.ts';

const store = storeForAll({}, async () => {});
beforeEach(async () => {
  await sql(store.database, 'truncate pet restart identity');
  await stock(store.database, 3);
});

type Client = Pick<Store, 'origin' | 'key'>;

const remaining = ({ headers }: HttpResponse) => Number(/^"key";r=(\d+);t=\d+$/.exec(`${headers.ratelimit}`)?.[1]);

/** What a request cost, read from the headers of cheap ones before and after it. */
async function costOf(client: Client, request: () => Promise<HttpResponse>): Promise<number> {
  const probe = async () => remaining(await rest(client, '/v1/pets/999'));
  const before = await probe();
  await request();
  return before - (await probe()) - 1;
}

const newPet = { name: 'Rex', categoryId: 1 };
const create = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

const restCalls: Array<[number, string, (client: Client) => Promise<HttpResponse>]> = [
  [4, 'a list of three', (client) => rest(client, '/v1/pets')],
  [2, 'a list of one', (client) => rest(client, '/v1/pets?limit=1')],
  [1, 'an empty list', (client) => rest(client, '/v1/pets?status=sold')],
  [1, 'a list that is refused', (client) => rest(client, '/v1/pets?limit=0')],
  [2, 'an animal found', (client) => rest(client, '/v1/pets/1')],
  [1, 'an animal that is not there', (client) => rest(client, '/v1/pets/77')],
  [1, 'an id that is none', (client) => rest(client, '/v1/pets/rex')],
  [2, 'an animal created', (client) => rest(client, '/v1/pets', { method: 'POST', json: newPet })],
  [1, 'a creation that is refused', (client) => rest(client, '/v1/pets', { method: 'POST', json: {} })],
  [0, 'a body that cannot be read', (client) => rest(client, '/v1/pets', { method: 'POST', body: '{' })],
  [0, 'an unknown path', (client) => rest(client, '/v1/nothing')],
];

const introspective = 'fragment F on Query { __schema { queryType { name } } __type(name: "Pet") { name } }';
const aliased = (count: number, field: string) =>
  Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(' ');

const documents: Array<[number, string, string]> = [
  [4, 'a list of three', '{ pets { id } }'],
  [2, 'a list of one', '{ pets(limit: 1) { id } }'],
  [1, 'an empty list', '{ pets(status: sold) { id } }'],
  [1, 'a list that is refused', '{ pets(limit: 0) { id } }'],
  [2, 'an animal found', '{ pet(id: 1) { id } }'],
  [1, 'an animal that is not there', '{ pet(id: 77) { id } }'],
  [1, 'an id that is none', '{ pet(id: "rex") { id } }'],
  [2, 'an animal created', create],
  [
    4,
    'two animals created',
    'mutation { a: createPet(input: { name: "a", categoryId: 1 }) { id } b: createPet(input: { name: "b", categoryId: 1 }) { id } }',
  ],
  [4, 'a connection of three', '{ petsConnection { edges { node { id } } } }'],
  [2, 'a connection of one', '{ petsConnection(first: 1) { edges { node { id } } } }'],
  [4, 'a connection without its edges', '{ petsConnection { pageInfo { hasNextPage } } }'],
  [8, 'a list twice, by aliases', '{ a: pets { id } b: pets { id } }'],
  [
    6,
    'a list and an animal, in fragments',
    '{ ...F } fragment F on Query { pets { id } ...G } fragment G on Query { pet(id: 1) { id } }',
  ],
  [4, 'a field written twice, which is one', '{ pets { id } pets { name } }'],
  [0, 'a field that is skipped', '{ pets @skip(if: true) { id } }'],
  [1, 'introspection', '{ __schema { queryType { name } } }'],
  [2, 'introspection of a type beside the schema, in a fragment', `{ ...F } ${introspective}`],
  [37, 'introspection under 37 aliases', `{ ${aliased(37, '__schema { queryType { name } }')} }`],
  [6, 'introspection beside a list of three', '{ a: __typename ...F pets { id } } '.concat(introspective)],
  [0, 'the name of the type alone', '{ __typename }'],
  [0, 'a document that is refused', '{ nothing }'],
  [0, 'a document that cannot be read', '{'],
];

describe('the unit: one per operation and one per animal', () => {
  test.each(restCalls)('%i for %s, on REST', async (cost, _what, call) => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      expect(await costOf(node, () => call(node))).toBe(cost);
    });
  });

  test.each(documents)('%i for %s, on GraphQL, interpreted and compiled', async (cost, _what, query) => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      for (let time = 0; time < 3; time += 1) {
        await sql(store.database, 'delete from pet where id > 3');
        expect(await costOf(node, () => graphqlText(node, { query }))).toBe(cost);
      }
    });
  });

  test('the standard introspection reads no animal and costs one, every time', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      for (let time = 0; time < 3; time += 1) {
        expect(await costOf(node, () => graphqlText(node, { query: getIntrospectionQuery() }))).toBe(1);
      }
    });
  });

  test('introspection that a key cannot pay for is refused', async () => {
    const query = (count: number) => `{ ${aliased(count, '__schema { queryType { name } }')} }`;
    await onNode(store, { QUOTA_PER_MINUTE: '38' }, async (node) => {
      // The last one before the limit may overdraw it.
      for (const count of [37, 37]) expect((await graphqlText(node, { query: query(count) })).status).toBe(200);
      const refused = await graphqlText(node, { query: query(1) });
      expect(refused.status).toBe(429);
      expect(refused).not.toHaveProperty('data');
      expect(refused.errors).toEqual([
        {
          message: 'This key has used its 38 units of this minute.',
          extensions: { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: Number(refused.headers['retry-after']) },
        },
      ]);
    });
  });

  test('nothing but 403 for a key that may not create', async () => {
    const { key } = await store.keys.issue({ name: 'reader', scope: 'read' });
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const reader = { ...node, key };
      expect(await costOf(reader, () => rest(reader, '/v1/pets', { method: 'POST', json: newPet }))).toBe(0);
      expect(await costOf(reader, () => graphqlText(reader, { query: create }))).toBe(0);
    });
  });
});
