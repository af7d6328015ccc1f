import type { Database } from '../../src/database/database.ts';

/** Runs SQL of a test's own: what no operation can do, the passing of time for instance. */
export async function sql<Row extends unknown[] = unknown[]>(
  database: Database,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return database.rows<Row>({ name: `test: ${text}`.slice(0, 60), text }, values);
}

/** Adds animals by the fastest way, and returns how many there are. */
export async function stock(database: Database, count: number): Promise<void> {
  const text = `insert into pet (name, category_id, status) select 'pet ' || n, n, 'available' from generate_series(1, $1) n`;
  await sql(database, text, [count]);
}

/** Counts the statements that a piece of work sends to the database. */
export async function statementsOf(database: Database, work: () => Promise<unknown>): Promise<string[]> {
  const names: string[] = [];
  const { rows } = database;
  database.rows = (statement, values) => {
    names.push(statement.name);
    return rows.call(database, statement, values) as never;
  };
  try {
    await work();
  } finally {
    database.rows = rows;
  }
  return names;
}
