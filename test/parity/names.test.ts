import { stockNames } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Names that are longer than any that is accepted, and were stored before, are served. */

const store = storeForAll();
beforeEach(() => store.empty());

describe.each(faces)('through $name', (face) => {
  test('exactly, in every list and alone', async () => {
    const names = ['short', 'x'.repeat(40_000), 'é'.repeat(20_000), 'é"\\\n'.repeat(8001), 'Bo', '🐕'.repeat(300_000)];
    const ids = await stockNames(store.database, names);
    const pets = names.map((name, at) => ({ id: `${ids[at]}`, name, categoryId: '1', status: 'available' }));
    // Side by side, so that they travel together with each other and with lists of the short one.
    const limits = [1, 2, 3, 4, 5, 6, 100, 1, 4];
    const lists = await Promise.all(limits.map((limit) => face.list(store, { limit })));
    expect(lists).toEqual(limits.map((limit) => ({ data: pets.slice(0, limit) })));
    expect(await face.list(store, { status: 'available', after: ids[2] })).toEqual({ data: pets.slice(3) });
    expect(await face.list(store, { status: 'sold' })).toEqual({ data: [] });
    const found = await Promise.all(ids.map((one) => face.find(store, one)));
    expect(found).toEqual(pets.map((data) => ({ data })));
  });
});

test('the last page says that it is, and the one before it that it is not, however long the names', async () => {
  const ids = await stockNames(store.database, Array(4).fill('x'.repeat(50_000)));
  const first = await rest(store, '/v1/pets?limit=2');
  expect(first.headers.link).toBe(`<${store.origin}/v1/pets?limit=2&after=${ids[1]}>; rel="next"`);
  expect((await rest(store, `/v1/pets?limit=2&after=${ids[1]}`)).headers).not.toHaveProperty('link');
  const query = '{ petsConnection(first: 2) { edges { node { id } } pageInfo { hasNextPage } } }';
  expect((await graphqlText(store, { query })).data).toEqual({
    petsConnection: { edges: ids.slice(0, 2).map((id) => ({ node: { id } })), pageInfo: { hasNextPage: true } },
  });
});
