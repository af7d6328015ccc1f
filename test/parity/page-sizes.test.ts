// runs: embedded, postgres

import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** A collection whose pages are longer than those of others. */

const description = 'Small.';
const bean = resource({
  name: 'Bean',
  description,
  path: '/beans',
  operations: ['list'],
  members: { name: textSchema({ maxLength: 2000, description }) },
  filters: ['name'],
  in: ['name'],
  mostItems: 250,
});
const BeanEntity = defineEntity({
  name: 'Bean',
  tableName: 'bean',
  properties: bean.columns,
  indexes: [{ properties: ['name', 'id'] }],
});
const beans: Module = {
  tag: { name: 'Beans', description },
  entities: [BeanEntity],
  migrations: [
    migrationOf('2027_08_01_000000_create_bean', [
      `create table "bean" ("id" bigserial primary key, "name" text not null, "version" int not null default 1)`,
      'create index "bean_name" on "bean" ("name", "id")',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      bean.serve(
        new Records<ItemOf<typeof bean>, NewOf<typeof bean>>(
          database,
          BeanEntity,
          bean.lists,
        ),
      ),
    ],
  }),
};
const store = storeForAll(
  { GRAPHQL_MAX_COST: '1000' },
  () =>
    sql(
      store.database,
      `insert into bean (name) select case n % 2 when 0 then 'even' else 'odd' end from generate_series(1, 600) n`,
    ),
  { more: [beans] },
);

const few = ['limit=20', 'limit=100', ''];
const many = ['limit=250', 'limit=101', 'limit=200&name=odd'];
const several = 'limit=250&name_in=odd&name_in=even';
test('REST gives as many items as are asked for, and a Link to the next', async () => {
  const paths = [...many, ...few, several].map((one) => `/v1/beans?${one}`);
  // Together, so that lists of several sizes share a statement or do not.
  const answers = await Promise.all(paths.map((path) => rest(store, path)));
  expect(
    answers.map(({ json, headers }) => [
      json.length,
      `${headers.link}`.includes('rel="next"'),
    ]),
  ).toEqual([250, 101, 200, 20, 100, 20, 250].map((count) => [count, true]));
  const last = await rest(store, '/v1/beans?limit=250&after=350');
  expect([last.json.length, last.headers.link]).toEqual([
    250,
    expect.not.stringContaining('rel="next"'),
  ]);
  const { status, json } = await rest(store, '/v1/beans?limit=251');
  expect([status, json.message]).toEqual([
    400,
    'limit must be an integer between 1 and 250.',
  ]);
});

test('GraphQL gives the same', async () => {
  const { data } = await graphqlThrice(store, {
    query: `{
      beans(limit: 250) { id }
      beansConnection(first: 250) { nodes { id } pageInfo { hasNextPage } }
      last: beansConnection(last: 250) { nodes { id } pageInfo { hasPreviousPage } }
    }`,
  });
  const { beans: listed, beansConnection: first, last } = data;
  expect([
    listed.length,
    first.nodes.length,
    first.pageInfo.hasNextPage,
    last.nodes.length,
    last.nodes.at(-1).id,
    last.pageInfo.hasPreviousPage,
  ]).toEqual([250, 250, true, 250, '600', true]);
});

const costs = (size: string) =>
  graphqlThrice(store, {
    query: `{ ${['a', 'b', 'c', 'd', 'e'].map((alias) => `${alias}: ${size}`)} }`,
  });
test.each([
  'beans(limit: 250) { id }',
  'beans(limit: 1000) { id }',
  'beansConnection(first: 250) { nodes { id } }',
  'beansConnection(last: 250) { nodes { id } }',
])('the cost of %s is that of all its items', async (list) => {
  const { errors } = await costs(list);
  expect(errors?.map(({ message }) => message)).toEqual([
    'The operation may cost too much: 1255, at most 1000. Most of it is a. Ask for fewer fields or smaller pages.',
  ]);
});

test('the contract names the most items of a page', async () => {
  const { data } = await graphqlThrice(store, {
    query: '{ __type(name: "Query") { fields { name args { description } } } }',
  });
  const words = data.__type.fields.flatMap(
    ({ name, args }: { name: string; args: Array<{ description: string }> }) =>
      name.startsWith('beans')
        ? args.map(({ description }) => description)
        : [],
  );
  expect(words.filter((one: string) => / to \d+/.test(one))).toEqual([
    'How many at most, 1 to 250.',
    'How many at most, 0 to 250; 20 when absent.',
    'How many of the last ones at most, 0 to 250, in place of `first`.',
  ]);
});

test('a filter takes texts as long as their member', async () => {
  const name = 'x'.repeat(1500);
  await sql(store.database, `insert into bean (name) values ('${name}')`);
  const { json } = await rest(store, `/v1/beans?name=${name}`);
  const query = `{ beans(name_in: ["${name}"]) { name } }`;
  const { data } = await graphqlThrice(store, { query });
  expect([json[0].name, data.beans[0].name]).toEqual([name, name]);
  await sql(store.database, `delete from bean where id > 600`);
  const longer = await rest(store, `/v1/beans?name=${name}${name}`);
  expect(longer.json.message).toBe(
    'name must be at most 2000 characters long.',
  );
});

test('others have pages as before', async () => {
  const { status } = await rest(store, '/v1/pets?limit=101');
  expect(status).toBe(400);
});
