import { createHash } from 'node:crypto';
import { MikroORM } from '@mikro-orm/postgresql';
import { type ClientBase, escapeIdentifier as quoted } from 'pg';
import { withoutLimits } from '../../database/migrations.ts';
import { type Model, ormOptions } from '../../database/options.ts';
import { endOfCounter } from '../../database/readiness.ts';

/**
 * A table of the model. A backup stores this description, because a later
 * release may have changed the table.
 */
export interface StoredTable {
  name: string;
  /** Types by name, in order. */
  columns: Record<string, string>;
  /** The primary key: rows are read in its order. */
  key: string[];
  /** The column with values from a counter. */
  counted?: string;
}

/**
 * A summary of a table. Tables with the same rows and counter have equal
 * contents.
 */
export interface Contents {
  table: string;
  rows: number;
  /** SHA-256 of the rows as lines. */
  sha256: string;
  /**
   * The last id that the counter issued; null when the table has no counter or
   * no id was issued.
   */
  counter: string | null;
  /** The greatest id; null in a table without rows or without a counter. */
  greatest: string | null;
}

/**
 * Called with the number of rows read or inserted so far, and the last of them.
 */
export type ReportRows = (
  table: string,
  rows: number,
  lines: string[],
) => unknown;

/** The tables of a model, the referenced ones first. Opens no connection. */
export function tablesOf(model: Model): StoredTable[] {
  const options = ormOptions(
    { url: 'postgres:///none', poolMax: 1 },
    model,
    {},
  );
  const { schema } = new MikroORM(options);
  const tables = schema.getTargetSchema().getTables();
  return tables.map((table) => {
    const columns = table.getColumns();
    const types = columns.map(({ name, type }) => [name, type]);
    return {
      name: table.name,
      columns: Object.fromEntries(types),
      key: table.getPrimaryKey()?.columnNames ?? [],
      counted: columns.find(({ autoincrement }) => autoincrement)?.name,
    };
  });
}

/**
 * Begins a transaction, which ends with its session. Its settings make equal
 * values have equal texts on every server, and lift all timeouts. They are
 * `local`, so that a pooler's next client does not get them.
 */
export function begin(session: ClientBase, mode: 'read only' | 'read write') {
  const isolation = mode === 'read only' ? 'repeatable read' : 'read committed';
  return session.query(`
    begin isolation level ${isolation} ${mode};
    set local timezone = 'UTC'; set local datestyle = 'ISO, YMD';
    set local intervalstyle = 'postgres'; set local bytea_output = 'hex';
    set local extra_float_digits = 1; set local client_encoding = 'UTF8';
    set local standard_conforming_strings = on; ${withoutLimits}`);
}

export async function appliedMigrations(session: ClientBase) {
  const { rows } = await session.query(
    'select name from mikro_orm_migrations order by id',
  );
  return namesOf(rows);
}

/** @throws Error when a later release has applied migrations */
export function assertKnownMigrations(
  applied: string[],
  { migrations }: Model,
  subject: string,
) {
  const newer = only(applied, namesOf(migrations));
  if (newer.length === 0) return;
  throw new Error(
    `${subject} is of a newer release, or of a part that is left out: this service does not know ${newer.join(', ')}. Use that release, or list the part.`,
  );
}

/**
 * Checks that a copy of the store would be complete.
 *
 * @returns the store's migrations
 * @throws Error unless it has exactly the migrations of this release, and no
 *   other tables or columns
 */
export async function assertCurrent(
  session: ClientBase,
  model: Model,
  tables: StoredTable[],
) {
  const applied = await appliedMigrations(session);
  assertKnownMigrations(applied, model, 'The store');
  const missing = only(namesOf(model.migrations), applied);
  if (missing.length > 0)
    throw new Error(
      `The store lacks migrations (${missing.join(', ')}). Run \`migrate\` first.`,
    );
  const names = namesOf(tables);
  const { unknown } = await differingColumns(session, tables);
  const { rows } = await session.query<{ object: string }>(
    triggersAndFunctions,
  );
  const objects = new Set(rows.map(({ object }) => object));
  for (const column of unknown) {
    const table = tableOf(column);
    if (names.includes(table)) objects.add(`column ${column}`);
    else objects.add(`table or view ${table}`);
  }
  if (objects.size === 0) return applied;
  throw new Error(
    `The store holds objects that are not the service's, and a copy would lack them: ${[...objects].sort().join(', ')}. Drop them first.`,
  );
}

const triggersAndFunctions = `
  select format('trigger %s', trigger_name) as object
    from information_schema.triggers where trigger_schema = current_schema()
      and trigger_name not like 'through\\_%'
  union select format('function %s', routine_name)
    from information_schema.routines
    where routine_schema = current_schema()
      and routine_name not like '%\\_through\\_%\\_fn'`;

export const namesOf = (ones: { name: string }[]) =>
  ones.map(({ name }) => name);

const only = (ones: string[], others: string[]) =>
  ones.filter((one) => !others.includes(one));

/**
 * The columns that only the schema has, and those that only these tables have,
 * like `book.title`.
 */
export async function differingColumns(
  session: ClientBase,
  tables: StoredTable[],
) {
  const { rows } = await session.query(`
    select format('%s.%s', table_name, column_name) as name
    from information_schema.columns
    where table_schema = current_schema()
      and table_name <> 'mikro_orm_migrations'`);
  const found = namesOf(rows);
  const known = tables.flatMap(({ name, columns }) =>
    Object.keys(columns).map((column) => `${name}.${column}`),
  );
  return { unknown: only(found, known), missing: only(known, found) };
}

/** @param column of `differingColumns` */
export const tableOf = (column: string) => column.split('.')[0] ?? '';

/**
 * Number of rows per statement. With names of 1,000 characters they take about
 * 2 MB.
 */
export const chunkSize = 500;

/** Reads tables within a transaction, as lines of JSON with exact numbers. */
export async function readTables(
  session: ClientBase,
  tables: StoredTable[],
  report: ReportRows,
) {
  const contents = [];
  for (const table of tables)
    contents.push(await readTable(session, table, report));
  return contents;
}

async function readTable(
  session: ClientBase,
  table: StoredTable,
  report: ReportRows,
): Promise<Contents> {
  const hash = createHash('sha256');
  let count = 0;
  const selection = `select ${namesOfColumns(table)} from ${quoted(table.name)}`;
  await session.query(`declare stored no scroll cursor for
    select to_json("#row")::text from (${selection}) "#row"
    order by ${keyOrder(table)}`);
  for (;;) {
    const { rows } = await session.query<{ to_json: string }>(
      `fetch ${chunkSize} from stored`,
    );
    if (rows.length === 0) break;
    // Only a json column can contain a line feed, between its tokens.
    const lines = rows.map((row) => row.to_json.replaceAll('\n', ' '));
    for (const line of lines) hash.update(`${line}\n`);
    count += lines.length;
    await report(table.name, count, lines);
  }
  await session.query('close stored');
  return {
    table: table.name,
    rows: count,
    sha256: hash.digest('hex'),
    ...(await counterOf(session, table)),
  };
}

const namesOfColumns = ({ columns }: StoredTable) =>
  Object.keys(columns).map(quoted).join(', ');

/** Yields the same order on every server. */
function keyOrder({ key, columns }: StoredTable) {
  const isText = (name: string) => /text|char/.test(`${columns[name]}`);
  const order = (name: string) =>
    isText(name) ? `${quoted(name)} collate "C"` : quoted(name);
  return key.map(order).join(', ');
}

/** Inserts lines of `readTable`. The embedded store does not support COPY. */
export async function insertRows(
  session: ClientBase,
  table: StoredTable,
  lines: string[],
) {
  const name = quoted(table.name);
  const text = `
    insert into ${name} (${namesOfColumns(table)})
    select ${namesOfColumns(table)}
    from json_populate_recordset(
      (select "#row" from ${name} as "#row" limit 0), $1::json)`;
  await session.query(text, [`[${lines.join(',')}]`]);
}

const sequence = 'pg_get_serial_sequence(quote_ident($1), $2)::regclass';

/**
 * The counter ignores rows near the end of the range, which do not advance it
 * (`readiness.ts`).
 */
async function counterOf(
  session: ClientBase,
  { name, columns, counted }: StoredTable,
): Promise<Pick<Contents, 'counter' | 'greatest'>> {
  if (!counted) return { counter: null, greatest: null };
  const end = endOfCounter(`${columns[counted]}`);
  const id = quoted(counted);
  const { rows } = await session.query(
    `select
      greatest(pg_sequence_last_value(${sequence}),
        max(${id}) filter (where ${id} between 1 and ${end}))::text as counter,
      max(${id})::text as greatest
    from ${quoted(name)}`,
    [name, counted],
  );
  return rows[0];
}

export async function rowCountsOf(session: ClientBase, tables: StoredTable[]) {
  const counts = [];
  for (const { name: table } of tables) {
    const text = `select count(*) from ${quoted(table)}`;
    const { rows } = await session.query(text);
    counts.push({ table, rows: Number(rows[0].count) });
  }
  return counts;
}

/**
 * Locks tables until the end of the transaction, and drops their foreign keys:
 * a row may refer to a later one.
 *
 * @returns SQL that adds the keys again
 */
export async function lock(session: ClientBase, tables: StoredTable[]) {
  const names = namesOf(tables).map(quoted);
  await session.query(
    `lock table ${names.join(', ')} in access exclusive mode`,
  );
  const text = `
    select 'alter table ' || conrelid::regclass as alter,
      'constraint ' || quote_ident(conname) as key,
      pg_get_constraintdef(oid) as rule
    from pg_constraint
    where contype = 'f' and conrelid = any ($1::text[]::regclass[])`;
  const { rows } = await session.query(text, [names]);
  for (const { alter, key } of rows)
    await session.query(`${alter} drop ${key}`);
  const added = rows.map(
    ({ alter, key, rule }) => `${alter} add ${key} ${rule}`,
  );
  return added.join(';');
}

/** Sets the last id that the counter has issued. */
export async function setCounter(
  session: ClientBase,
  { name, counted }: StoredTable,
  counter: string,
) {
  const values = [name, counted, counter];
  await session.query(`select setval(${sequence}, $3)`, values);
}
