// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { statementsFor } from '../../../src/records/statements.ts';
import { type Column, Table } from '../../../src/records/table.ts';
import { ToyEntity } from '../../modules/toys/toy.entity.ts';
import { toysModule } from '../../modules/toys/toys.module.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** How many of 100,000 rows a page reads, in every order, by every filter. */

const store = storeForAll(
  { DATABASE_STATEMENT_TIMEOUT_MS: '100000' },
  undefined,
  { more: [toysModule] },
);
const page = 21;
const place = {
  madeAt: { value: '2026-06-01', id: 50_000 },
  id: { value: '', id: 50_000 },
};

type Plan = {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
};

/** The rows that scans read, with those that they discard. */
function scanned(plan: Plan): number {
  const own = plan['Node Type'].includes('Scan')
    ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) *
      plan['Actual Loops']
    : 0;
  const below = (plan.Plans ?? []).map(scanned);
  return below.reduce((sum, one) => sum + one, own);
}

/** A unique index serves its own filter: an owner needs no index for it. */
const OwnerEntity = defineEntity({
  name: 'Owner',
  tableName: 'owner',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    email: p.text(),
    state: p.enum(['new', 'old']),
    bornAt: p.datetime(),
  },
  indexes: [
    { properties: ['state', 'id'] },
    { properties: ['bornAt', 'id'] },
    { properties: ['state', 'bornAt', 'id'] },
  ],
  uniques: [{ properties: ['email'] }],
});

describe.each(['custom', 'generic'])('with %s plans', (mode) => {
  test('each list reads no more than its page', async () => {
    const { database } = store;
    const table = new Table(database.orm.getMetadata(ToyEntity));
    const { pages } = statementsFor(
      table,
      [table.column('kind')],
      [table.column('madeAt')],
    );
    const read = await database.withSession(async (session) => {
      await session.query('begin');
      // In the order of their ids but for an hour, as rows are added; one kind
      // is rare.
      await session.query(`insert into toy (id, name, kind, made_at)
        select n, 'toy ' || n, case when n % 1000 = 0 then 'mouse' when n % 3 = 0 then 'bone' else 'ball' end,
          timestamptz '2026-01-01' + n * interval '5 minutes' + (n * 7919 % 60) * interval '1 minute'
        from generate_series(1, 100000) n`);
      await session.query('analyze toy');
      await session.query(`set local plan_cache_mode = force_${mode}_plan`);
      const rowsOf = async (text: string, parameters: unknown[]) => {
        await session.query(`prepare listing as ${text}`);
        const literals = parameters.map((one) =>
          Array.isArray(one)
            ? `'{${one.map((v) => v ?? 'null')}}'`
            : `'${one}'`,
        );
        const { rows } = await session.query(
          `explain (analyze, format json) execute listing(${literals})`,
        );
        await session.query('deallocate listing');
        return scanned(rows[0]['QUERY PLAN'][0].Plan);
      };
      const found: Array<[name: string, rows: number]> = [];
      for (const [name, { lists, listMany }] of pages) {
        const { value, id } = name.startsWith('id') ? place.id : place.madeAt;
        const isById = name.startsWith('id');
        const begin = isById || name.endsWith('_after') ? [id] : [];
        const after = [
          ...(isById || begin.length === 0 ? [] : [value]),
          ...begin,
        ];
        for (const { filters, text } of lists)
          for (const kind of filters.length > 0 ? ['mouse', 'ball'] : [null]) {
            const given = kind === null ? [] : [kind];
            const rows = await rowsOf(text, [page, ...given, ...after]);
            found.push([`${name} ${kind}`, rows]);
          }
        const kinds = [null, 'mouse', 'ball'];
        const many = [kinds.map(() => page), kinds];
        const places = after.map((one) => kinds.map(() => one));
        const rows = await rowsOf(listMany.text, [...many, ...places]);
        found.push([`${name} together`, rows / kinds.length]);
      }
      await session.query('rollback');
      return found;
    });
    expect(read).toHaveLength(6 * 4);
    // Lists that are read together have a row of parameters each.
    const wide = read.filter(([, rows]) => rows > page + 1 || rows === 0);
    expect(wide).toEqual([]);
  });

  test('a filter by a unique member reads one row, in every order', async () => {
    const orm = new MikroORM({ entities: [OwnerEntity], dbName: 'none' });
    const table = new Table(orm.getMetadata(OwnerEntity));
    const [state, email, bornAt] = ['state', 'email', 'bornAt'].map((member) =>
      table.column(member),
    ) as [Column, Column, Column];
    const { pages } = statementsFor(table, [state, email], [bornAt]);
    const read = await store.database.withSession(async (session) => {
      await session.query('begin');
      await session.query(`create table owner (id bigserial primary key, email text not null unique,
        state text not null, born_at timestamptz not null)`);
      await session.query('create index on owner (state, id)');
      await session.query('create index on owner (born_at, id)');
      await session.query('create index on owner (state, born_at, id)');
      await session.query(`insert into owner (email, state, born_at)
        select n || '@example.com', case when n % 2 = 0 then 'old' else 'new' end, timestamptz '2026-01-01' + n * interval '1 minute'
        from generate_series(1, 100000) n`);
      await session.query('analyze owner');
      await session.query(`set local plan_cache_mode = force_${mode}_plan`);
      const found: number[] = [];
      for (const [name, { order, lists }] of pages) {
        const begin = order.isAscending ? -1 : 1e12;
        const value = order.isAscending ? '2020-01-01' : '2030-01-01';
        const place = order.by ? [value, begin] : [begin];
        for (const { filters, text } of lists.slice(2)) {
          const given = filters.map(({ member }) =>
            member === 'email' ? '50000@example.com' : 'old',
          );
          await session.query(`prepare listing as ${text}`);
          const literals = [page, ...given, ...(order.hasPlace ? place : [])];
          const { rows } = await session.query(
            `explain (analyze, format json) execute listing(${literals.map((one) => `'${one}'`)})`,
          );
          await session.query('deallocate listing');
          expect([name, rows[0]['QUERY PLAN'][0].Plan['Actual Rows']]).toEqual([
            name,
            1,
          ]);
          found.push(scanned(rows[0]['QUERY PLAN'][0].Plan));
        }
      }
      await session.query('rollback');
      return found;
    });
    expect(read).toEqual(Array(6 * 2).fill(1));
  });
});
