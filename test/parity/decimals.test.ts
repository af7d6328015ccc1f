import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { decimalSchema } from '#engine/validation/schemas.js';
import { graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Decimals in filters and creations: one number has several texts. */

const bill = resource({
  name: 'Bill',
  description: 'What is to be paid.',
  path: '/bills',
  operations: ['list', 'create', 'remove'],
  members: { price: decimalSchema(12, 2, { description: 'How much.' }) },
  in: ['price'],
});
const BillEntity = defineEntity({
  name: 'Bill',
  tableName: 'bill',
  properties: bill.columns,
  indexes: [{ properties: ['price', 'id'] }],
});
const bills: Module = {
  tag: { name: 'Bills', description: 'Bills.' },
  entities: [BillEntity],
  migrations: [
    migrationOf('2027_04_01_000000_create_bill', [
      `create table "bill" ("id" bigserial primary key, "price" numeric(12,2) not null,
        "version" int not null default 1)`,
      'create index "bill_price_id_index" on "bill" ("price", "id")',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      bill.serve(
        new Records<ItemOf<typeof bill>, NewOf<typeof bill>>(
          database,
          BillEntity,
          bill.lists,
        ),
      ),
    ],
  }),
};
const add = async (price: string, headers = {}) =>
  rest(store, '/v1/bills', { method: 'POST', json: { price }, headers });
const store = storeForAll(
  {},
  async () => {
    for (const price of ['1', '0', '1.10', '100']) await add(price);
  },
  { more: [bills] },
);

test('several texts of one number find its items once, in both APIs', async () => {
  const asked = ['1', '1.0', '1.00', '-0', '0.0', '100', '1.1'];
  const query = asked.map((price) => `price_in=${price}`).join('&');
  for (const order of ['', '&sort=id_desc']) {
    const { json } = await rest(store, `/v1/bills?${query}${order}`);
    const prices = json.map(({ price }: { price: string }) => price);
    expect(prices.toSorted()).toEqual(['0.00', '1.00', '1.10', '100.00']);
  }
  const { data } = await graphqlThrice(store, {
    query: `{ billsConnection(price_in: ${JSON.stringify(asked)}) { totalCount nodes { id } } }`,
  });
  expect(data.billsConnection.totalCount).toBe(4);
  expect(data.billsConnection.nodes).toHaveLength(4);
});

test('a creation is the same with another text of its number', async () => {
  for (const [one, other] of [
    ['7.10', '7.1'],
    ['7', '7.00'],
    ['0', '-0'],
  ] as const) {
    const key = { 'idempotency-key': `of ${one}`.replace(' ', '-') };
    const first = await add(one, key);
    const again = await add(other, key);
    expect(again.json).toEqual(first.json);
    expect(again.headers['idempotent-replayed']).toBe('true');
    await rest(store, `/v1/bills/${first.json.id}`, { method: 'DELETE' });
  }
});
