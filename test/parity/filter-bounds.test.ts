// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { decimalSchema, int64Schema } from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { storeForAll } from '../support/store.ts';

/** Rows from before the bounds of inputs are asked for, on both APIs. */

const description = 'x';
const ranges = ['price', 'steps', 'weight', 'big'] as const;
const offer = resource({
  name: 'Bargain',
  description: 'What is offered.',
  path: '/bargains',
  operations: ['list', 'create'],
  members: {
    price: decimalSchema(8, 2, {
      ...{ description, minimum: '0', exclusiveMaximum: '100' },
    }),
    steps: Type.Integer({
      ...{ description, minimum: 0, maximum: 100, multipleOf: 5 },
    }),
    weight: Type.Number({ description, minimum: 0, multipleOf: 0.1 }),
    big: int64Schema({ description, minimum: 1, maximum: 9 }),
  },
  filters: ['steps'],
  in: ['price'],
  combinations: [['steps'], ['price']],
  ranges,
});
const indexes = ['', 'steps', 'price']
  .flatMap((filter) => [filter, ...ranges.map((one) => `${filter},${one}`)])
  .map((names) => [...new Set(`${names},id`.split(',').filter(Boolean))])
  .filter(({ length }) => length > 1);
const OfferEntity = defineEntity({
  name: 'Bargain',
  tableName: 'bargain',
  properties: {
    ...offer.columns,
    steps: () => p.smallint(),
  },
  indexes: [...new Map(indexes.map((one) => [`${one}`, one])).values()].map(
    (properties) => ({ name: properties.join('_'), properties }),
  ) as never,
});
const offers: Module = {
  tag: { name: 'Bargains', description: 'Bargains.' },
  entities: [OfferEntity],
  migrations: [
    migrationOf('2027_11_01_000000_create_bargain', [
      `create table bargain (id bigserial primary key, price numeric(8, 2) not null,
        steps smallint not null, weight double precision not null,
        big bigint not null, version int not null default 1)`,
    ]),
  ],
  open({ database }) {
    const records = new Records<ItemOf<typeof offer>, NewOf<typeof offer>>(
      database,
      OfferEntity,
      offer.lists,
    );
    return { resources: [offer.serve(records)] };
  },
};
const insert = () =>
  sql(
    store.database,
    'insert into bargain (price, steps, weight, big) values (-1, -3, -0.25, -7), (100, 7, 0.25, 10)',
  );
const store = storeForAll({}, insert, { more: [offers] });

/** Without the contract: it shows the bounds of new items. */
async function find(query: string) {
  const headers = { authorization: `Bearer ${store.key}` };
  const url = `/v1/bargains?${query}`;
  const answer = await store.app.inject({ url, headers });
  return answer.json();
}
const idsOf = (items: Array<{ id: unknown }>) =>
  items.map(({ id }) => Number(id));

test.each([
  ['price_lt=100', 'price_lt: "100"', [1]],
  ['price_gte=-1', 'price_gte: "-1"', [1, 2]],
  ['price_in=-1', 'price_in: ["-1"]', [1]],
  ['steps=7', 'steps: 7', [2]],
  ['steps_lt=101', 'steps_lt: 101', [1, 2]],
  ['steps_lte=70000', 'steps_lte: 70000', [1, 2]],
  ['steps=70000', 'steps: 70000', []],
  ['weight_gte=0.25', 'weight_gte: 0.25', [2]],
  ['weight_lt=-0.2', 'weight_lt: -0.2', [1]],
  ['big_lte=-7', 'big_lte: "-7"', [1]],
  ['big_gt=9', 'big_gt: "9"', [2]],
])('%s is no input', async (text, args, ids) => {
  const json = await find(text);
  const query = `{ bargains(${args}) { id } }`;
  const { data } = await graphqlThrice(store, { query });
  expect([json, data?.bargains].map(idsOf)).toEqual([ids, ids]);
});

test.each([
  [
    'price_gte=1.005',
    'price_gte must be a decimal of at most 6 digits before the point and 2 after it.',
  ],
  [
    'price_gte=1234567',
    'price_gte must be a decimal of at most 6 digits before the point and 2 after it.',
  ],
  [
    'steps_lt=2147483648',
    'steps_lt must be an integer between -2147483648 and 2147483647.',
  ],
  ['big_lt=9223372036854775808', 'big_lt must be an integer between -92233'],
])('%s is none of the column', async (text, message) => {
  const json = await find(text);
  expect(json.status).toBe(400);
  expect(json.message).toContain(message);
});
