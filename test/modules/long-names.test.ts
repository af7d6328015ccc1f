// runs: embedded, postgres, pgbouncer, postgres-12

import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import type { Database, Statement } from '#engine/database/database.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { sql, withRows } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { beforeAll, expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * Tables with names of up to 63 bytes, the most that PostgreSQL keeps, and with
 * those that statements give to their parts.
 */

const description = 'Long.';
const longest = 'a'.repeat(62);
const tables = {
  ones: `${longest}1`,
  twos: `${longest}2`,
  threes: 'b'.repeat(54),
  fours: 'ü'.repeat(31),
  claims: 'claim',
  founds: 'found',
  inputs: 'input',
  inserteds: 'inserted',
  items: 'item',
  knowns: 'known',
  locks: 'lock',
  pages: 'page',
  readies: 'ready',
  storeds: 'stored',
  wanteds: 'wanted',
  writtens: 'written',
};

const moduleOf = ([many, table]: [string, string], at: number): Module => {
  const one = resource({
    name: `Long${at}`,
    description,
    path: `/${many}`,
    operations: ['list', 'find', 'create', 'change', 'remove'],
    members: { name: textSchema({ maxLength: 20, description }) },
    filters: ['name'],
  });
  const entity = defineEntity({
    name: `Long${at}`,
    tableName: table,
    properties: one.columns,
    indexes: [{ name: `long_${at}`, properties: ['name', 'id'] }],
  });
  return {
    tag: { name: many, description },
    entities: [entity],
    migrations: [
      migrationOf(`2027_07_${`${at}`.padStart(2, '0')}_000000_create_long`, [
        `create table "${table}" ("id" bigserial primary key, "name" text not null, "version" int not null default 1)`,
        `create index "long_${at}" on "${table}" ("name", "id")`,
      ]),
    ],
    open: ({ database }) => ({
      resources: [
        one.serve(
          new Records<ItemOf<typeof one>, NewOf<typeof one>>(
            database,
            entity,
            one.lists,
          ),
        ),
      ],
    }),
  };
};

const names = Object.keys(tables);
const more = Object.entries(tables).map((one, at) => moduleOf(one, at + 1));
const store = storeForAll({}, undefined, { more });

beforeAll(async () => {
  for (const many of names)
    for (const name of [`${many} 1`, `${many} 2`, `${many} 3`])
      await rest(store, `/v1/${many}`, { method: 'POST', json: { name } });
});

async function useEach() {
  for (const round of [1, 2, 3])
    await Promise.all(
      names.map(async (many) => {
        const all = await rest(store, `/v1/${many}`);
        const wanted = [`${many} 1`, `${many} 2`, `${many} 3`];
        const namesIn = (items: Array<{ name: string }>) =>
          items.map(({ name }) => name);
        expect(namesIn(all.json).slice(0, 3)).toEqual(wanted);
        const some = await rest(store, `/v1/${many}?name=${many}%202&limit=1`);
        expect(namesIn(some.json)).toEqual([`${many} 2`]);
        const one = await rest(store, `/v1/${many}/3`);
        const change = { version: round, name: wanted[2] };
        const changed = await rest(store, `/v1/${many}/3`, {
          method: 'PATCH',
          json: change,
        });
        expect([one.json.name, changed.status]).toEqual([wanted[2], 200]);
        const json = { name: 'x'.repeat(round) };
        const headers = { 'idempotency-key': `${many}-${round}` };
        const create = { method: 'POST', json, headers };
        const created = await rest(store, `/v1/${many}`, create);
        const replayed = await rest(store, `/v1/${many}`, create);
        expect(replayed.json).toEqual(created.json);
        const pages = await Promise.all(
          [1, 2, 3].map((limit) => rest(store, `/v1/${many}?limit=${limit}`)),
        );
        expect(pages.map(({ json }) => json.length)).toEqual([1, 2, 3]);
        const { data } = await graphqlThrice(store, {
          query: `{ ${many} { name } }`,
        });
        expect(namesIn(data[many]).slice(0, 3)).toEqual(wanted);
      }),
    );
}

test('each table has its rows, by each statement, again and again', async () => {
  const failures: unknown[] = [];
  const note =
    (rows: Database['rows']) => (statement: Statement, values: unknown[]) =>
      rows(statement, values).catch((error) => {
        failures.push(statement.name);
        throw error;
      }) as never;
  await withRows(store.database, note, useEach);
  // Lists that fail together are read alone.
  expect(failures).toEqual([]);
});

test('the statements of this process stay prepared', async () => {
  const prepared = await sql(
    store.database,
    'select name from pg_prepared_statements where length(name) > 0',
  );
  const isPooled = process.env.TEST_POOLER_URL !== undefined;
  expect(
    prepared.length > 0 || isPooled || !process.env.TEST_DATABASE_URL,
  ).toBe(true);
  for (const [name] of prepared)
    expect(Buffer.byteLength(`${name}`)).toBeLessThanOrEqual(63);
});
