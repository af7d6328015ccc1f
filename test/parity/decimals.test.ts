import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import {
  decimalSchema,
  int64Schema,
  withDefault,
} from '#engine/validation/schemas.js';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Decimals in filters and creations: one number has several texts. */

const share = decimalSchema(40, 20, {
  description: 'A part.',
  exclusiveMinimum: '-0.00000000000000000001',
  maximum: '9007199254740993.1',
});
const bill = resource({
  name: 'Bill',
  description: 'What is to be paid.',
  path: '/bills',
  operations: ['list', 'create', 'remove'],
  members: {
    price: decimalSchema(12, 2, { description: 'How much.' }),
    share: withDefault(share, '0.5'),
    weight: withDefault(
      int64Schema({ description: 'Grams.', minimum: 1, exclusiveMaximum: 9 }),
      1,
    ),
  },
  in: ['price'],
  ranges: ['share'],
});
const BillEntity = defineEntity({
  name: 'Bill',
  tableName: 'bill',
  properties: bill.columns,
  indexes: [
    { properties: ['price', 'id'] },
    { properties: ['share', 'id'] },
    { properties: ['price', 'share', 'id'] },
  ],
});
const bills: Module = {
  tag: { name: 'Bills', description: 'Bills.' },
  entities: [BillEntity],
  migrations: [
    migrationOf('2027_04_01_000000_create_bill', [
      `create table "bill" ("id" bigserial primary key, "price" numeric(12,2) not null,
        "share" numeric(40,20) not null, "weight" bigint not null,
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

const aDecimal =
  'a decimal of at most 20 digits before the point and 20 after it';
test.each([
  ['share', '0', undefined],
  ['share', '-0.00', undefined],
  ['share', '0.00000000000000000001', undefined],
  ['share', '9007199254740993.10', undefined],
  ['share', '9007199254740993.10000000000000000001', aDecimal],
  ['share', '-0.00000000000000000001', aDecimal],
  ['share', '-1', aDecimal],
  ['share', '1e1', aDecimal],
  ['weight', 1n, undefined],
  ['weight', 8n, undefined],
  ['weight', 0n, 'an integer between 1 and 8'],
  ['weight', 9n, 'an integer between 1 and 8'],
])(
  '%s: %s is in its bounds, or refused with them, on both APIs',
  async (name, value, words) => {
    const given = { price: '7', [name]: value };
    const { status, json } = await rest(store, '/v1/bills', {
      ...{ method: 'POST', json: given, headers: { prefer: 'tx=rollback' } },
    });
    const text = typeof value === 'string' ? `"${value}"` : `${value}`;
    const { data, errors } = await graphqlText(store, {
      query: `mutation { createBill(input: { price: "7", ${name}: ${text} }) { id } }`,
    });
    if (!words) {
      expect([status, errors]).toEqual([201, undefined]);
      await rest(store, `/v1/bills/${data.createBill.id}`, {
        method: 'DELETE',
      });
      return;
    }
    const range =
      words === aDecimal
        ? ', at most 9007199254740993.1, greater than -0.00000000000000000001'
        : '';
    expect(status).toBe(400);
    expect(json.message).toContain(`${words}${range}`);
    expect(errors?.[0]?.message).toBe(json.message);
  },
);

test('bounds are told by both contracts, and filters have none', async () => {
  const words =
    'A part. It is at most 9007199254740993.1, greater than -0.00000000000000000001.';
  const { text } = await send(store.origin, { path: '/v1/openapi.json' });
  const { properties } = JSON.parse(text).components.schemas.NewBill;
  expect(properties.share.description).toBe(words);
  expect(properties.weight).toMatchObject({ minimum: 1, exclusiveMaximum: 9 });
  const { data } = await graphqlThrice(store, {
    query: '{ __type(name: "NewBill") { inputFields { name description } } }',
  });
  expect(data.__type.inputFields).toContainEqual({
    name: 'share',
    description: words,
  });
  expect((await rest(store, '/v1/bills?share_gte=-1')).status).toBe(200);
  expect((await rest(store, '/v1/bills?share_gte=0.5')).status).toBe(200);
  expect(() =>
    decimalSchema(4, 2, { description: '', minimum: '1e3' }),
  ).toThrow('The bound 1e3 is no decimal of 4, 2.');
});

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
