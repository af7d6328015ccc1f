import { type Face, faces, type SeenPet } from '../support/faces.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of `limit`, `status` and `after`. */

let all: SeenPet[];
const store = storeForAll({}, async () => {
  const statuses = ['available', 'pending', 'sold'];
  const create = (_: unknown, number: number) =>
    (faces[number % 2] as Face).create(store, {
      name: `pet ${number}`,
      categoryId: number,
      status: statuses[number % 3],
    });
  const outcomes = await Promise.all(Array.from({ length: 105 }, create));
  all = outcomes.map((outcome) => (outcome as { data: SeenPet }).data).sort((a, b) => Number(a.id) - Number(b.id));
});

const limitRule = 'limit must be an integer between 1 and 100.';
const afterRule = 'after must be an integer between -9223372036854775808 and 9223372036854775807.';
const statusRule = 'status must be one of available, pending, sold.';
const refused = (message: string) => ({ code: 'BAD_USER_INPUT', status: 400, message });
/** GraphQL's own types refuse it first, in their own words. */
const refusedByType = refused(expect.any(String) as never);

describe.each(faces)('through $name', (face) => {
  test.each([
    [{}, 20],
    [{ limit: 1 }, 1],
    [{ limit: 20 }, 20],
    [{ limit: 99 }, 99],
    [{ limit: 100 }, 100],
  ])('a list with %j has the first %i animals', async (query, length) => {
    expect(await face.list(store, query)).toEqual({ data: all.slice(0, length) });
  });

  test.each([0, -0, 101, -1, 2147483647, -2147483648])('a limit of %p is refused', async (limit) => {
    expect(await face.list(store, { limit })).toEqual(refused(limitRule));
  });

  test.each([
    1.5,
    2147483648,
    9223372036854775807n,
    9223372036854775808n,
    '',
    'abc',
    '1 OR 1=1',
    '05',
    '+5',
    '1e1',
    true,
  ])('a limit of %p is refused by type', async (limit) => {
    expect(await face.list(store, { limit })).toEqual(face.name === 'REST' ? refused(limitRule) : refusedByType);
  });

  test.each(['available', 'pending', 'sold'])('a list of what is %s has nothing else', async (status) => {
    const some = all.filter((pet) => pet.status === status);
    expect(await face.list(store, { status })).toEqual({ data: some.slice(0, 20) });
    expect(await face.list(store, { status, limit: 100 })).toEqual({ data: some });
    expect(await face.list(store, { status, limit: 3, after: some[2]?.id })).toEqual({ data: some.slice(3, 6) });
  });

  test.each([
    'Available',
    '',
    'unknown',
    ' sold',
    'sold ',
    'sold,pending',
    "sold' OR '1'='1",
    'toString',
    '__proto__',
    5,
  ])('a status of %p is refused', async (status) => {
    expect(await face.list(store, { status })).toEqual(face.name === 'REST' ? refused(statusRule) : refusedByType);
  });

  test.each(['-9223372036854775808', '-1', '0'])('a list after %s, before all ids, is whole', async (after) => {
    expect(await face.list(store, { after, limit: 100 })).toEqual({ data: all.slice(0, 100) });
  });

  test('a list goes on after any animal, the last one included', async () => {
    for (const index of [0, 1, 50, all.length - 2, all.length - 1]) {
      expect(await face.list(store, { after: all[index]?.id })).toEqual({ data: all.slice(index + 1, index + 21) });
    }
  });

  test('a list goes on after an id that no animal has', async () => {
    const gone = all[10] as SeenPet;
    await store.database.rows({ name: 'remove', text: 'delete from pet where id = $1' }, [gone.id]);
    all = all.filter((pet) => pet !== gone);
    expect(await face.list(store, { after: gone.id })).toEqual({ data: all.slice(10, 30) });
    expect(await face.list(store, { after: '999999' })).toEqual({ data: [] });
    expect(await face.list(store, { after: '9223372036854775807' })).toEqual({ data: [] });
  });

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    `1${'0'.repeat(60)}`,
    'rex',
    '',
    '1.0',
    '1e3',
    '007',
    '+1',
    ' 1',
    '-0',
    '0x1',
    '١',
    '1\u0000',
    '1; drop table pet; --',
  ])('a list after %j is refused', async (after) => {
    expect(await face.list(store, { after })).toEqual(refused(afterRule));
  });

  test('an id that no animal has finds none', async () => {
    for (const id of ['9223372036854775807', '0', '-1', '9223372036854775808', 'rex', '007', '1 OR 1=1']) {
      expect(await face.find(store, id)).toEqual({ data: null });
    }
  });

  test('every fault of a query is named', async () => {
    expect(await face.list(store, { limit: 101, after: 'x' })).toEqual(
      refused(`${limitRule.slice(0, -1)}; ${afterRule}`),
    );
  });
});

describe('the query string of REST', () => {
  test.each([
    ['limit=1&limit=1', 'limit must be given once.'],
    ['limit=1&limit=200', 'limit must be given once.'],
    ['limit', limitRule],
    ['limit=1.0', limitRule],
    ['limit=%ff', limitRule],
    ['limit=5%00', limitRule],
    ['limit=+5', limitRule],
    ['limit=%2B5', limitRule],
    ['status=sold&status=sold', 'status must be given once.'],
    ['status=', statusRule],
    ['after=1&after=2', 'after must be given once.'],
    ['after=', afterRule],
    ['limit=x&status=y&after=z', `${statusRule.slice(0, -1)}; ${limitRule.slice(0, -1)}; ${afterRule}`],
  ])('%s is refused: %s', async (query, message) => {
    expect((await rest(store, `/v1/pets?${query}`)).json).toEqual(refused(message));
  });

  test.each([
    '',
    '&',
    'foo=bar',
    'Limit=1',
    'limit[]=1',
    'petId=1',
    '__proto__=1&constructor=2&toString=3',
    '%',
    '%ff=%ff',
  ])('unknown parameters like "%s" are ignored', async (query) => {
    expect((await rest(store, `/v1/pets?${query}`)).json).toHaveLength(20);
  });
});
