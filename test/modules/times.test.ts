// runs: embedded, postgres

import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import {
  decimalSchema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** An answer, a filter and a cursor agree on what is stored. */

const memo = resource({
  name: 'Memo',
  description: 'A memo.',
  path: '/memos',
  operations: ['list', 'find', 'create', 'change'],
  members: {
    text: textSchema({ description: 'What it says.' }),
    rate: decimalSchema(2, 2, { description: 'A rate.' }),
    due: Type.Optional(nullable(moment({ description: 'When it is due.' }))),
  },
  filters: ['due'],
  in: ['due'],
  orders: ['createdAt'],
  ranges: ['createdAt'] as never,
  times: true,
});
const MemoEntity = defineEntity({
  name: 'Memo',
  tableName: 'memo',
  properties: memo.columns,
  indexes: [['createdAt'], ['due'], ['due', 'createdAt']].map((members) => ({
    properties: [...members, 'id'] as never,
  })),
});
const memos: Module = {
  tag: { name: 'Memos', description: 'Memos.' },
  entities: [MemoEntity],
  migrations: [
    migrationOf('2027_08_04_000000_create_memo', [
      `create table memo (id bigserial primary key, text text not null, rate numeric(2,2) not null, due timestamptz(3),
        created_at timestamptz not null default now(), changed_at timestamptz not null default now(),
        version int not null default 1)`,
      'create index on memo (created_at, id)',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      memo.serve(
        new Records<ItemOf<typeof memo>, NewOf<typeof memo>>(
          database,
          MemoEntity,
          memo.lists,
        ),
      ),
    ],
  }),
};
const store = storeForAll({}, undefined, { more: [memos] });
const add = (rate = '0.1') =>
  rest(store, '/v1/memos', { method: 'POST', json: { text: 'a', rate } });
async function idsOf(query: string) {
  const { json } = await rest(store, `/v1/memos?${query}`);
  return json.map(({ id }: { id: number }) => id);
}

beforeEach(() => sql(store.database, 'truncate memo restart identity'));

test('an item is stored with times of whole milliseconds', async () => {
  for (const _ of [1, 2, 3]) await add();
  const json = { version: 1, text: 'b' };
  await rest(store, '/v1/memos/1', { method: 'PATCH', json });
  const uneven = `select id::text from memo
    where created_at <> date_trunc('milliseconds', created_at)
      or changed_at <> date_trunc('milliseconds', changed_at)`;
  expect(await sql(store.database, uneven)).toEqual([]);
});

test('a shown time finds its item, if others have stored microseconds', async () => {
  for (const _ of [1, 2, 3, 4]) await add();
  await sql(
    store.database,
    `update memo set created_at = timestamptz '1969-11-29 11:00:00.0006Z' + (id - 1) * interval '300 us'`,
  );
  const { json } = await rest(store, '/v1/memos?sort=createdAt');
  const ends = json.map(({ createdAt }: any) => createdAt.slice(-5));
  expect(ends).toEqual(['.000Z', '.000Z', '.001Z', '.001Z']);
  const at = '1969-11-29T11:00:00';
  expect(await idsOf(`createdAt_gte=${at}.000Z`)).toEqual([1, 2, 3, 4]);
  expect(await idsOf(`createdAt_gt=${at}.000Z`)).toEqual([3, 4]);
  expect(await idsOf(`createdAt_gte=${at}.001Z`)).toEqual([3, 4]);
  expect(await idsOf(`createdAt_lte=${at}.000Z`)).toEqual([1, 2]);
  expect(await idsOf(`createdAt_lt=${at}.001Z`)).toEqual([1, 2]);
  const { headers } = await rest(
    store,
    `/v1/memos?sort=createdAt&limit=1&createdAt_gt=${at}.000Z`,
  );
  const [, next = ''] = /memos\?([^>]+)>/.exec(`${headers.link}`) ?? [];
  expect(await idsOf(next)).toEqual([4]);
});

test.each(['due=', 'createdAt_lt=', 'createdAt_gte='])(
  '%s of a part of a millisecond is refused, not cut',
  async (filter) => {
    const time = '1969-11-29T11:00:00.000';
    const ask = (part: string) =>
      rest(store, `/v1/memos?${filter}${time}${part}Z`);
    expect((await ask('000')).status).toBe(200);
    expect((await ask('9')).json.message).toMatch(
      / must be a date and time like 2030-12-05T00:00:00\.000Z\.$/,
    );
  },
);

test('a shown time finds its item by its value, whatever others have stored', async () => {
  const { properties } = store.database.orm.getMetadata(MemoEntity);
  expect(properties.due.columnTypes).toEqual(['timestamptz(3)']);
  for (const _ of [1, 2, 3]) await add();
  const stored = `update memo set due = timestamptz '1969-11-29 11:00:00.0006Z' + (id - 1) * interval '1400 us'`;
  await sql(store.database, stored);
  const { json } = await rest(store, '/v1/memos');
  const times = json.map(({ due }: { due: string }) => due);
  expect(new Set(times).size).toBe(3);
  for (const [at, due] of times.entries())
    expect(await idsOf(`due=${due}`)).toEqual([at + 1]);
  const several = times.map((due: string) => `due_in=${due}`).join('&');
  expect(await idsOf(several)).toEqual([1, 2, 3]);
  await sql(store.database, 'update memo set due = now() where id = 2');
  const { json: now } = await rest(store, '/v1/memos/2');
  expect(await idsOf(`due=${now.due}&sort=createdAt_desc`)).toEqual([2]);
});

test.each(['-0.05', '0.05', '-0.5', '-0.99'])(
  'a decimal without whole digits is given, shown and given again: %s',
  async (rate) => {
    const added = await add(rate);
    expect(added.status).toBe(201);
    const again = await add(added.json.rate);
    expect(again.json.rate).toBe(added.json.rate);
  },
);
