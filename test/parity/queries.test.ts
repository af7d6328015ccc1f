// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference, plugins

import { type Api, apis, type SeenPet } from '../support/apis.ts';
import { sql } from '../support/database-access.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of `limit`, `status` and `after`. */

let all: SeenPet[];
const store = storeForAll({}, async () => {
  const statuses = ['available', 'pending', 'sold'];
  const create = (_: unknown, number: number) =>
    (apis[number % 2] as Api).create(store, {
      name: `pet ${number}`,
      categoryId: number,
      status: statuses[number % 3],
    });
  const outcomes = await Promise.all(Array.from({ length: 105 }, create));
  all = outcomes
    .map((outcome) => (outcome as { data: SeenPet }).data)
    .sort((a, b) => Number(a.id) - Number(b.id));
});

type Query = Record<string, unknown>;
const limitRule = 'limit must be an integer between 1 and 100.';
const afterRule =
  'after must be an integer between -9223372036854775808 and 9223372036854775807.';
const statusRule = 'status must be one of available, pending, sold.';
const plain = (rule: string) => `${rule.slice(0, -1)}, in plain digits.`;
const spelled = `${statusRule.slice(0, -1)}, spelled exactly so.`;
const refused = (message: unknown) => ({
  code: 'BAD_USER_INPUT',
  status: 400,
  message,
});
const beyond = [
  '9223372036854775808',
  '-9223372036854775809',
  `1${'0'.repeat(60)}`,
];
const noInt64 = [...beyond, 'rex', '1.5', '1e400', '١', '1\u0000'];
const notPlain = ['', '1.0', '1e3', '007', '+1', ' 1', '-0', '0x1'];

describe.each(apis)('through $name', (api) => {
  test.each([
    [{}, 20],
    [{ limit: 1 }, 1],
    [{ limit: 20 }, 20],
    [{ limit: 100 }, 100],
  ])('a list with %j has the first %i animals', async (query, length) => {
    expect(await api.list(store, query)).toEqual({
      data: all.slice(0, length),
    });
  });

  test.each<[query: Query, message: string]>([
    ...[0, 101, -1, -2147483648].map(
      (limit) => [{ limit }, limitRule] as [Query, string],
    ),
    ...noInt64.map((after) => [{ after }, afterRule] as [Query, string]),
    ...notPlain.map(
      (after) => [{ after }, plain(afterRule)] as [Query, string],
    ),
    [{ limit: 101, after: 'x' }, `${limitRule.slice(0, -1)}; ${afterRule}`],
  ])(
    'a list with %p is refused by both APIs with the same message',
    async (query, message) => {
      expect(await api.list(store, query)).toEqual(refused(message));
    },
  );

  test.each<[query: Query, message: string]>([
    ...[1.5, 2147483648, 9223372036854775808n, 'abc', '1e400', true].map(
      (limit) => [{ limit }, limitRule] as [Query, string],
    ),
    ...['', '05', '+5', '1e1', '5.0'].map(
      (limit) => [{ limit }, plain(limitRule)] as [Query, string],
    ),
    ...['', 'sold,pending', 'toString', '__proto__', 5].map(
      (status) => [{ status }, statusRule] as [Query, string],
    ),
    ...['Available', ' sold', 'SOLD'].map(
      (status) => [{ status }, spelled] as [Query, string],
    ),
  ])(
    'a list with %p is refused by REST, and by the types of GraphQL',
    async (query, message) => {
      expect(await api.list(store, query)).toEqual(
        refused(api.name === 'REST' ? message : expect.any(String)),
      );
    },
  );

  test.each(['available', 'pending', 'sold'])(
    'a list with the status %s has no other animals',
    async (status) => {
      const some = all.filter((pet) => pet.status === status);
      expect(await api.list(store, { status })).toEqual({
        data: some.slice(0, 20),
      });
      expect(await api.list(store, { status, limit: 100 })).toEqual({
        data: some,
      });
      expect(
        await api.list(store, { status, limit: 3, after: some[2]?.id }),
      ).toEqual({ data: some.slice(3, 6) });
    },
  );

  test('a list continues after any id: one below all, that of an animal, that of a deleted one, and one above all', async () => {
    for (const after of ['-9223372036854775808', '-1', '0']) {
      expect(await api.list(store, { after, limit: 100 })).toEqual({
        data: all.slice(0, 100),
      });
    }
    for (const index of [0, 1, 50, all.length - 2, all.length - 1]) {
      expect(await api.list(store, { after: all[index]?.id })).toEqual({
        data: all.slice(index + 1, index + 21),
      });
    }
    const gone = all[10] as SeenPet;
    await sql(store.database, 'delete from pet where id = $1', [gone.id]);
    all = all.filter((pet) => pet !== gone);
    expect(await api.list(store, { after: gone.id })).toEqual({
      data: all.slice(10, 30),
    });
    for (const after of ['999999', '9223372036854775807']) {
      expect(await api.list(store, { after })).toEqual({ data: [] });
    }
  });

  test('an id that no animal has finds no animal', async () => {
    // No list can contain the least int64, so nothing finds an animal with it.
    const least = '-9223372036854775808';
    await sql(
      store.database,
      `insert into pet (id, name, category_id, status) values (${least}, '', 1, 'sold')`,
    );
    for (const id of [
      least,
      '9223372036854775807',
      '0',
      '-1',
      '9223372036854775808',
      'rex',
      '007',
      '1 OR 1=1',
    ]) {
      expect(await api.find(store, id)).toEqual({ data: null });
    }
    await sql(store.database, `delete from pet where id = ${least}`);
  });
});

describe('the query string of REST', () => {
  test.each([
    ['limit=1&limit=200', 'limit must be given once.'],
    ['limit', plain(limitRule)],
    ['limit=5%00', limitRule],
    ['limit=+5', plain(limitRule)],
    ['limit=%2B5', plain(limitRule)],
    ['limit=0', limitRule],
    ['status=sold&status=sold', 'status must be given once.'],
    ['status=', statusRule],
    ['after=1&after=2', 'after must be given once.'],
    ['after=', plain(afterRule)],
    [
      'limit=x&status=y&after=z',
      `${statusRule.slice(0, -1)}; ${limitRule.slice(0, -1)}; ${afterRule}`,
    ],
  ])('%s is refused: %s', async (query, message) => {
    expect((await rest(store, `/v1/pets?${query}`)).json).toEqual(
      refused(message),
    );
  });

  test.each([
    '',
    '&',
    'Limit=1',
    'limit[]=1',
    '__proto__=1&constructor=2&toString=3',
    '%',
    '%ff=%ff',
  ])('unknown parameters like "%s" are ignored', async (query) => {
    expect((await rest(store, `/v1/pets?${query}`)).json).toHaveLength(20);
  });
});
