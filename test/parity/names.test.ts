import { stockNames } from '../support/database-access.ts';
import { faces, type SeenPet } from '../support/faces.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** How long a name may be, and what becomes of those that are longer and there already. */

const store = storeForAll();
beforeEach(() => store.empty());

const refused = (message: string) => ({ code: 'BAD_USER_INPUT', status: 400, message });
const id = expect.stringMatching(/^[1-9]\d*$/);

describe.each(faces)('through $name', (face) => {
  // A character is a Unicode code point: an emoji is one, whatever UTF-16 makes of it; a combining accent is one, too.
  test.each([
    ['plain ones', 'x', 10_000],
    ['of two bytes', 'é', 10_000],
    ['of two UTF-16 units', '🐕', 10_000],
    ['with an accent apart', 'e\u0301', 5000],
    ['of either kind', 'x🐕', 5000],
  ])('a name has at most 10,000 characters: %s', async (_what, part, times) => {
    const name = part.repeat(times);
    expect(await face.create(store, { name, categoryId: 1 })).toEqual({
      data: { id, name, categoryId: '1', status: 'available' },
    });
    for (const longer of [`${name}x`, `${name}🐕`, name + name, name.repeat(20)]) {
      const tooLong = refused('name must be at most 10000 characters long.');
      expect(await face.create(store, { name: longer, categoryId: 1 })).toEqual(tooLong);
    }
    expect(await face.list(store, {})).toMatchObject({ data: { length: 1 } });
  });

  test('the operator says how long a name may be, and what is there already is served all the same', async () => {
    const ten = { name: '🐕'.repeat(10), categoryId: 1 };
    const kept = await face.create(store, ten);
    await onNode(store, { TEXT_MAX_LENGTH: '9' }, async (node) => {
      const there = { ...store, ...node };
      expect(await face.create(there, ten)).toEqual(refused('name must be at most 9 characters long.'));
      expect(await face.create(there, { ...ten, name: 'x'.repeat(9) })).toMatchObject({ data: { name: 'xxxxxxxxx' } });
      expect(await face.list(there, { limit: 1 })).toEqual({ data: [(kept as { data: SeenPet }).data] });
    });
    await onNode(store, { TEXT_MAX_LENGTH: '10001' }, async (node) => {
      const name = 'x'.repeat(10_001);
      expect(await face.create({ ...store, ...node }, { ...ten, name })).toMatchObject({ data: { name } });
    });
  });

  test('a name that is too long is one of the faults that are told', async () => {
    const message = 'name must be at most 10000 characters long; categoryId must be an integer';
    const outcome = await face.create(store, { name: 'x'.repeat(10_001), categoryId: 2n ** 63n });
    expect(outcome).toMatchObject({ code: 'BAD_USER_INPUT', message: expect.stringContaining(message) });
  });

  test('longer names that are there already are served exactly, in every list and alone', async () => {
    // About what is read for many lists at a time, in bytes and in characters; and far more.
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

  test('a page holds as many animals as fit into 16 MiB', async () => {
    const names = Array.from({ length: 12 }, (_, at) => `${at}`.padEnd(1_000_000, 'é'));
    const ids = await stockNames(store.database, names);
    const pets = names.map((name, at) => ({ id: `${ids[at]}`, name, categoryId: '1', status: 'available' }));
    for (const query of [{ limit: 12 }, { limit: 100 }, {}, { status: 'available' }]) {
      expect(await face.list(store, query)).toEqual({ data: pets.slice(0, 8) });
    }
    expect(await face.list(store, { limit: 5 })).toEqual({ data: pets.slice(0, 5) });
    expect(await face.list(store, { limit: 5, after: ids[4], status: 'available' })).toEqual({
      data: pets.slice(5, 10),
    });
    expect(await face.list(store, { after: ids[6] })).toEqual({ data: pets.slice(7) });
  });
});

test('the last page says that it is, and the one before it that it is not, however long the names', async () => {
  const ids = await stockNames(store.database, Array(4).fill('x'.repeat(50_000)));
  const first = await rest(store, '/v1/pets?limit=2');
  expect(first.headers.link).toBe(`<${store.origin}/v1/pets?limit=2&after=${ids[1]}>; rel="next"`);
  expect((await rest(store, `/v1/pets?limit=2&after=${ids[1]}`)).headers).not.toHaveProperty('link');
  const query = '{ petsConnection(first: 2) { edges { node { id } } pageInfo { hasNextPage } } }';
  expect((await graphqlText(store, { query })).data).toEqual({
    petsConnection: {
      edges: ids.slice(0, 2).map((id) => ({ node: { id } })),
      pageInfo: { hasNextPage: true },
    },
  });
});

test('both contracts and the decisions say how long a name may be', async () => {
  await onNode(store, { TEXT_MAX_LENGTH: '77' }, async ({ origin }) => {
    const { text } = await send(origin, { path: '/v1/openapi.json' });
    const { NewPet, Pet } = JSON.parse(text).components.schemas;
    expect([NewPet.properties.name.maxLength, Pet.properties.name.maxLength]).toEqual([77, undefined]);
  });
  const query = '{ __type(name: "NewPet") { inputFields { name description } } }';
  const { inputFields } = (await graphqlText(store, { query })).data.__type;
  const [{ description }] = inputFields.filter(({ name }: { name: string }) => name === 'name');
  expect(description).toContain('at most 10,000 characters unless the operator says otherwise');
});
