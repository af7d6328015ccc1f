import { hash } from 'node:crypto';
import type { Database } from '../../packages/postgres/src/database.ts';
import type { ServiceNode } from './store.ts';

type Statement = Parameters<Database['rows']>[0];

/** Runs SQL of a test's own: what no operation can do, the passing of time for instance. */
export async function sql<Row extends unknown[] = unknown[]>(
  database: Database,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return database.rows<Row>({ name: `test ${hash('md5', text)}`, text }, values);
}

/** Adds animals by the fastest way, and returns how many there are. */
export async function stock(database: Database, count: number): Promise<void> {
  const text = `insert into pet (name, category_id, status) select 'pet ' || n, n, 'available' from generate_series(1, $1) n`;
  await sql(database, text, [count]);
}

/** Adds animals with these names, of any length. @returns their ids, ascending. */
export async function stockNames(database: Database, names: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const name of names) {
    const text = `insert into pet (name, category_id, status) values ($1, 1, 'available') returning id`;
    const [[id] = ['']] = await sql<[id: string]>(database, text, [name]);
    ids.push(id);
  }
  return ids;
}

/** Does a piece of work while statements go another way. */
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

/** The names of the statements that a piece of work sends to the database. */
export async function statementsOf(database: Database, work: () => Promise<unknown>): Promise<string[]> {
  return (await sentDuring(database, work)).map(({ name }) => name);
}

/** The statements that a piece of work sends to the database, with their values. */
export async function sentDuring(database: Database, work: () => Promise<unknown>) {
  const sent: Array<{ name: string; values: unknown[] }> = [];
  const note = (rows: Database['rows']) => (statement: Statement, values: unknown[]) => {
    sent.push({ name: statement.name, values });
    return rows(statement, values) as never;
  };
  await withRows(database, note, work);
  return sent;
}

/** Whoever reads animals meanwhile gets this SQLSTATE from the database: there is a view in the place of the table. */
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
  await sql(database, 'alter table pet rename to pet_put_aside');
  const row = `failing('${sqlState}') as id, ''::text as name, 1::bigint as category_id, 'sold'::text as status`;
  await sql(database, `create view pet as select ${row}`);
  try {
    return await work();
  } finally {
    await sql(database, 'drop view pet');
    await sql(database, 'alter table pet_put_aside rename to pet');
  }
}

/** What is written meanwhile is written afterwards. */
export async function whileWritesWait<Result>(database: Database, work: () => Promise<Result>): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wait = (rows: Database['rows']) => async (statement: Statement, values: unknown[]) => {
    if (statement.isWrite) await promise;
    return rows(statement, values) as never;
  };
  return withRows(database, wait, work).finally(resolve);
}

/** Makes calls to a node at the same time: no statement begins before all of them have arrived. */
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
  const wait = (rows: Database['rows']) => async (statement: Statement, values: unknown[]) => {
    await arrived;
    return rows(statement, values) as never;
  };
  return withRows(database, wait, () => Promise.all(Array.from({ length: count }, call)));
}
