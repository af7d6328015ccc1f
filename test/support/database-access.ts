import { hash } from 'node:crypto';
import type { Database } from '#engine/database/database.js';
import type { ServiceNode } from './store.ts';

type Statement = Parameters<Database['rows']>[0];

/**
 * Runs SQL for what no operation of the service can do, such as moving a time
 * stamp.
 */
export async function sql<Row extends unknown[] = unknown[]>(
  database: Database,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return database.rows<Row>(
    { name: `test ${hash('md5', text)}`, text },
    values,
  );
}

/** Inserts this many animals with one statement. */
export async function stock(database: Database, count: number): Promise<void> {
  const text = `insert into pet (name, category_id, status) select 'pet ' || n, n, 'available' from generate_series(1, $1) n`;
  await sql(database, text, [count]);
}

/**
 * Inserts animals with these names, of any length. @returns their ids,
 * ascending.
 */
export async function stockNames(
  database: Database,
  names: string[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const name of names) {
    const text = `insert into pet (name, category_id, status) values ($1, 1, 'available') returning id`;
    const [[id] = ['']] = await sql<[id: string]>(database, text, [name]);
    ids.push(id);
  }
  return ids;
}

/** Runs `work` while `wayOf` wraps the function that sends statements. */
export async function withRows<Result>(
  database: Database,
  wayOf: (rows: Database['rows']) => Database['rows'],
  work: () => Promise<Result>,
): Promise<Result> {
  const { rows } = database;
  database.rows = wayOf(rows.bind(database));
  try {
    return await work();
  } finally {
    database.rows = rows;
  }
}

/** Runs `work`, and SQL before the first statement of a name in it. */
export async function overtaken<Result>(
  database: Database,
  text: string,
  work: () => Promise<Result>,
  name = /^(?:change|remove)_/,
): Promise<Result> {
  let isFirst = true;
  const overtake =
    (rows: Database['rows']) =>
    async (statement: Statement, values: unknown[]) => {
      const isOvertaken = isFirst && name.test(statement.name);
      if (isOvertaken) isFirst = false;
      if (isOvertaken) await rows({ name: '', text }, []);
      return rows(statement, values) as never;
    };
  return withRows(database, overtake, work);
}

/** How often `work` reads a table: the price of what it does. */
export async function readsOf(
  table: string,
  database: Database,
  work: () => Promise<unknown>,
): Promise<number> {
  const source = new RegExp(`from "?${table}\\b`);
  let count = 0;
  const note =
    (rows: Database['rows']) => (statement: Statement, values: unknown[]) => {
      const isRead = !statement.isWrite && source.test(statement.text);
      if (isRead) count += 1;
      return rows(statement, values) as never;
    };
  await withRows(database, note, work);
  return count;
}

/**
 * Runs `work` while every read of animals fails with this SQLSTATE: a view
 * replaces the table.
 */
export async function whileReadsFail<Result>(
  database: Database,
  sqlState: string,
  work: () => Promise<Result>,
): Promise<Result> {
  await sql(
    database,
    `create or replace function failing(state text) returns bigint language plpgsql volatile as
     $$ begin raise exception 'this is a test' using errcode = state; end $$`,
  );
  // No read finds the table missing.
  const atOnce = (...statements: string[]) =>
    sql(database, `do $$ begin ${statements.join('; ')}; end $$`);
  const row = `failing('${sqlState}') as id, ''::text as name, 1::bigint as category_id, 'sold'::text as status`;
  await atOnce(
    'alter table pet rename to pet_put_aside',
    `create view pet as select ${row}`,
  );
  try {
    return await work();
  } finally {
    await atOnce('drop view pet', 'alter table pet_put_aside rename to pet');
  }
}

/** Runs `work` and delays its writes until it has ended. */
export async function whileWritesWait<Result>(
  database: Database,
  work: () => Promise<Result>,
): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wait =
    (rows: Database['rows']) =>
    async (statement: Statement, values: unknown[]) => {
      if (statement.isWrite) await promise;
      return rows(statement, values) as never;
    };
  return withRows(database, wait, work).finally(resolve);
}

/**
 * Calls a node concurrently: no statement begins before all calls have arrived.
 */
export async function together<Result>(
  node: Pick<ServiceNode, 'app'>,
  database: Database,
  count: number,
  call: () => Promise<Result>,
): Promise<Result[]> {
  const arrived = new Promise<void>((resolve) => {
    let missing = count;
    node.app.server.on('request', () => {
      missing -= 1;
      if (missing === 0) resolve();
    });
  });
  const wait =
    (rows: Database['rows']) =>
    async (statement: Statement, values: unknown[]) => {
      await arrived;
      return rows(statement, values) as never;
    };
  return withRows(database, wait, () =>
    Promise.all(Array.from({ length: count }, call)),
  );
}
