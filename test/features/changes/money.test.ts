// runs: embedded, postgres

import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { select } from '#engine/records/select.js';
import { nullable } from '#engine/validation/schemas.js';
import { money, moneyPattern, moneySchema } from '../../modules/money/money.ts';
import { sql } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlThrice } from '../../support/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { exportAndImport } from '../../support/transfer.ts';

/** A kind that the engine does not know: it is one entry in one file. */

const due = resource({
  name: 'Due',
  description: 'What is owed.',
  path: '/dues',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: {
    sum: moneySchema({ description: 'How much.' }),
    fee: nullable(moneySchema({ description: 'How much more.' })),
  },
  in: ['sum'],
  orders: ['sum'],
  ranges: ['sum'],
  trace: true,
});
const DueEntity = defineEntity({
  name: 'Due',
  tableName: 'due',
  properties: due.columns,
  indexes: [{ properties: ['sum', 'id'] }],
});
const { write } = money.codec;
const largeDues = operation({
  name: 'largeDues',
  description: 'Those of at least so much.',
  path: '/large-dues',
  input: Type.Object({ from: moneySchema({ description: 'How much.' }) }),
  output: Type.Array(due.schemas.item, { $id: 'LargeDues', maxItems: 100 }),
});
const dues: Module = {
  tag: { name: 'Dues', description: 'Dues.' },
  entities: [DueEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_05_01_000000_create_due', [
      `create table "due" ("id" bigserial primary key, "sum" bigint not null,
        "fee" bigint null, "version" int not null default 1)`,
      'create index "due_sum_id_index" on "due" ("sum", "id")',
    ]),
  ],
  open({ database }) {
    const all = new Records<ItemOf<typeof due>, NewOf<typeof due>>(
      database,
      DueEntity,
      due.lists,
    );
    const large = largeDues.serve(
      database,
      ({ from }, call) => select(call, all)`
        select * from ${all} as due where sum >= ${write(from)} order by id`,
    );
    return { resources: [due.serve(all), large] };
  },
};
const store = storeForAll({}, undefined, { more: [dues] });
const most = '9999999999999999.99';
const sums = ['12.5', '-0.05', most, '3', '12.50'];

beforeEach(async () => {
  await sql(store.database, 'truncate "due" restart identity');
  for (const sum of sums) await add({ sum, fee: null });
});
const add = (json: object) => rest(store, '/v1/dues', { method: 'POST', json });

async function sumsOf(query: string) {
  const { json } = await rest(store, `/v1/dues?${query}`);
  return json.map(({ sum }: { sum: string }) => sum);
}

test('REST stores cents, and shows one text of each amount', async () => {
  expect(await sumsOf('')).toEqual(['12.50', '-0.05', most, '3.00', '12.50']);
  const cents = await sql(store.database, 'select sum::text from "due"');
  expect(JSON.stringify(cents)).toContain('999999999999999999');
  const { json: changed } = await rest(store, '/v1/dues/1', {
    method: 'PATCH',
    json: { version: 1, sum: '7.1', fee: '0.3' },
  });
  expect(changed).toEqual({ id: 1, version: 2, sum: '7.10', fee: '0.30' });
  expect((await rest(store, '/v1/dues/1')).json).toEqual(changed);
});

test('own SQL compares it, as its codec writes it, on both APIs', async () => {
  const { json } = await rest(store, '/v1/large-dues?from=12.5');
  const sums = json.map(({ sum }: { sum: string }) => sum);
  expect(sums).toEqual(['12.50', most, '12.50']);
  const { data } = await graphqlThrice(store, {
    query: '{ largeDues(from: "12.5") { sum } }',
  });
  expect(data.largeDues.map(({ sum }: any) => sum)).toEqual(sums);
});

test('a trace shows it as an answer does', async () => {
  const { json } = await add({ sum: '12.5', fee: null });
  await rest(store, `/v1/dues/${json.id}`, {
    method: 'PATCH',
    json: { version: 1, sum: '7.1', fee: '0.3' },
  });
  const changes = await rest(store, '/v1/changes?sort=id_desc&limit=2');
  expect(changes.json).toMatchObject([
    {
      before: { sum: '12.50', fee: null },
      after: { sum: '7.10', fee: '0.30' },
    },
    { before: null, after: { sum: '12.50', fee: null } },
  ]);
});

test('so does a live list of changes, on both APIs', async () => {
  const query =
    'subscription { changeAdded(after: 0, collection: "dues") { after } }';
  const path = '/v1/changes?after=0&collection=dues';
  for (const request of [{ body: { query } }, { method: 'GET', path }]) {
    const stream = await openStream(store, request);
    const [event] = await stream.until(1);
    const { data } = event ?? {};
    expect((data.data?.changeAdded ?? data).after).toEqual({
      sum: '12.50',
      fee: null,
    });
    stream.close();
  }
});

test.each(['1.005', '1e3', '', 5, null, '12345678901234567'])(
  'REST and GraphQL refuse %p in the same words',
  async (sum) => {
    const { json } = await add({ sum, fee: null });
    expect(json).toMatchObject({ code: 'BAD_USER_INPUT', status: 400 });
    expect(json.message).toContain('sum must be an amount such as 12.50');
    if (typeof sum !== 'string') return;
    const { errors } = await graphqlThrice(store, {
      query:
        'mutation($sum: Money!) { createDue(input: { sum: $sum, fee: null }) { id } }',
      variables: { sum },
    });
    expect(errors?.[0]?.message).toBe(json.message);
  },
);

test('lists are filtered, sorted and paged by the number', async () => {
  expect(await sumsOf('sum_in=12.5&sum_in=3')).toEqual([
    '12.50',
    '3.00',
    '12.50',
  ]);
  expect(await sumsOf('sort=sum')).toEqual([
    '-0.05',
    '3.00',
    '12.50',
    '12.50',
    most,
  ]);
  expect(await sumsOf('sort=sum_desc&sum_gte=3&sum_lt=12.51')).toEqual([
    '12.50',
    '12.50',
    '3.00',
  ]);
  const { headers } = await rest(store, '/v1/dues?sort=sum&limit=3');
  const [, next = ''] = /dues\?([^>]+)>/.exec(`${headers.link}`) ?? [];
  expect(await sumsOf(next)).toEqual(['12.50', most]);
});

test('GraphQL has a scalar for it', async () => {
  const { data } = await graphqlThrice(store, {
    query: `{ dues(sort: sum, sum_gt: "12.5") { id sum fee }
      duesConnection(sum_in: ["12.50"]) { totalCount nodes { sum } }
      __type(name: "Money") { kind description } }`,
  });
  expect(data).toEqual({
    dues: [{ id: '3', sum: most, fee: null }],
    duesConnection: {
      totalCount: 2,
      nodes: [{ sum: '12.50' }, { sum: '12.50' }],
    },
    __type: {
      kind: 'SCALAR',
      description: 'An exact amount, such as "12.50".',
    },
  });
});

test('the contract has its schema', async () => {
  const { body } = await store.app.inject('/v1/openapi.json');
  const json = JSON.parse(body);
  expect(json.components.schemas.Due.properties.sum).toEqual({
    type: 'string',
    pattern: moneyPattern,
    description: 'How much.',
  });
});

test.each(['ndjson', 'csv'] as const)(
  'it is exported to %s and imported',
  async (format) => {
    const { database } = store;
    const refused = await exportAndImport(database, dues, 'due', format);
    expect(refused).toEqual([]);
    expect(await sumsOf('')).toEqual(['12.50', '-0.05', most, '3.00', '12.50']);
  },
);
