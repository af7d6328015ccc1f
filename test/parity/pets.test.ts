import { type Face, faces, type SeenPet } from '../support/faces.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();
beforeEach(() => store.empty());

const int64Rule = 'must be an integer between -9223372036854775808 and 9223372036854775807';

async function created(face: Face, newPet: Record<string, unknown>): Promise<SeenPet> {
  const outcome = await face.create(store, newPet);
  if (!('data' in outcome)) throw new Error(JSON.stringify(outcome));
  return outcome.data;
}

describe.each(faces)('through $name', (face) => {
  test('an animal created is listed and found, by both faces', async () => {
    const rex = await created(face, { name: 'Rex', categoryId: 5, status: 'pending' });
    expect(rex).toEqual({ id: expect.stringMatching(/^\d+$/), name: 'Rex', categoryId: '5', status: 'pending' });
    for (const other of faces) {
      expect(await other.list(store, {})).toEqual({ data: [rex] });
      expect(await other.find(store, rex.id)).toEqual({ data: rex });
    }
  });

  test('an animal created without a status is available', async () => {
    expect(await created(face, { name: 'Rex', categoryId: 5 })).toMatchObject({ status: 'available' });
  });

  test.each([9007199254740993n, 9223372036854775807n, -9223372036854775808n, 0n, -1n])(
    'the category %s comes back digit for digit',
    async (categoryId) => {
      const pet = await created(face, { name: 'Rex', categoryId });
      expect(pet.categoryId).toBe(`${categoryId}`);
      for (const other of faces) expect(await other.list(store, {})).toEqual({ data: [pet] });
    },
  );

  test('a list is ascending, at most 20 long, and continues after the last id seen', async () => {
    const all: SeenPet[] = [];
    for (let number = 1; number <= 23; number += 1)
      all.push(await created(face, { name: `pet ${number}`, categoryId: number }));
    expect(await face.list(store, {})).toEqual({ data: all.slice(0, 20) });
    expect(await face.list(store, { limit: 3, after: all[1]?.id })).toEqual({ data: all.slice(2, 5) });
    expect(await face.list(store, { after: all[22]?.id })).toEqual({ data: [] });
  });

  test('a list is filtered by status', async () => {
    for (const status of ['available', 'pending', 'sold']) await created(face, { name: status, categoryId: 1, status });
    for (const status of ['available', 'pending', 'sold']) {
      expect(await face.list(store, { status })).toMatchObject({ data: [{ name: status, status }] });
    }
  });

  test('an id that no animal has finds none', async () => {
    for (const id of ['9223372036854775807', '0', '-1', '9223372036854775808', 'rex', '007']) {
      expect(await face.find(store, id)).toEqual({ data: null });
    }
  });

  test.each([
    [{ limit: 0 }, 'limit must be an integer between 1 and 100.'],
    [{ limit: 101 }, 'limit must be an integer between 1 and 100.'],
    [{ after: 'rex' }, `after ${int64Rule}.`],
    [{ after: '9223372036854775808', limit: -1 }, `limit must be an integer between 1 and 100; after ${int64Rule}.`],
  ])('a list with %j is refused: %s', async (query, message) => {
    expect(await face.list(store, query)).toEqual({ code: 'BAD_USER_INPUT', status: 400, message });
  });

  test.each([
    [{ name: 'Rex', categoryId: 9223372036854775808n }, `categoryId ${int64Rule}.`],
    [{ name: 'a\u0000b', categoryId: 1 }, 'name must be free of U+0000 and of lone surrogates.'],
    [
      { name: '\ud800', categoryId: -9223372036854775809n },
      `name must be free of U+0000 and of lone surrogates; categoryId ${int64Rule}.`,
    ],
  ])('creating %p is refused: %s', async (newPet, message) => {
    expect(await face.create(store, newPet)).toEqual({ code: 'BAD_USER_INPUT', status: 400, message });
    expect(await face.list(store, {})).toEqual({ data: [] });
  });

  test.each([
    'Ünïcödé 🐕‍🦺',
    'مرحبا',
    "Robert'); drop table pet;--",
    '<script>alert(1)</script>',
    '',
    ' ',
    '{"a":1}',
    '\\u0000',
    '{a,b}',
    'NULL',
  ])('the name %j is kept exactly', async (name) => {
    const pet = await created(face, { name, categoryId: 1 });
    expect(pet.name).toBe(name);
    for (const other of faces) expect(await other.list(store, {})).toEqual({ data: [pet] });
  });

  test('without a key, or with a wrong one, nothing is told but 401', async () => {
    for (const key of [null, 'wrong', `${store.key}x`]) {
      const refused = { code: 'UNAUTHENTICATED', status: 401, message: expect.stringContaining('API key') };
      expect(await face.list(store, { limit: 0 }, key)).toEqual(refused);
      expect(await face.create(store, { name: 1 }, key)).toEqual(refused);
      expect(await face.find(store, '1', key)).toEqual(refused);
    }
  });
});
