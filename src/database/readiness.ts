import type { MikroORM } from '@mikro-orm/postgresql';
import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Log, Model } from './options.ts';
import { DatabaseUnavailable, isUnmigrated, sqlState } from './postgres-errors.ts';
import type { PostgresServer, RunStatement, Statement } from './postgres-server.ts';

type Readiness = [isReadOnly: string, mayWrite: string | null, applied: string, behind: string | null];

const mayNot = 'The role in DATABASE_URL may not read and write all tables.';

/**
 * One statement that reports whether the database accepts writes, whether this role may read and write all tables, how
 * many migrations are applied, and which counter is behind its rows.
 */
function readinessOf(orm: MikroORM, { migrations }: Model): Statement {
  const counted = countedTables(orm);
  const list = (texts: string[]) => `unnest(array[${texts.map(literal).join(', ')}]::text[]) as name`;
  const tables = [...orm.getMetadata().getAll().values()].map(({ tableName }) => tableName);
  // The greatest ids are read first: an insert draws its id before its row is visible. Citus accepts them only as CTEs.
  const greatest = counted.map(
    ({ table, column, end }, at) =>
      `greatest_${at} as materialized (select max(${quoted(column)}) as id from ${quoted(table)} where ${quoted(column)} < ${end})`,
  );
  const behind = counted.map(
    (one, at) =>
      `case when (select id from greatest_${at}) > coalesce(pg_sequence_last_value(${counterOf(one)}), 0) then ${literal(one.table)} end`,
  );
  return {
    name: 'readiness',
    text: `
      ${greatest.length > 0 ? `with ${greatest.join(', ')}` : ''}
      select pg_is_in_recovery() or current_setting('transaction_read_only')::bool,
        (select bool_and(has_table_privilege(quote_ident(name), 'select') and has_table_privilege(quote_ident(name), 'insert'))
          from ${list(tables)})
        and (select bool_and(has_sequence_privilege(pg_get_serial_sequence(quote_ident(name), 'id'), 'usage'))
          from ${list(counted.map(({ table }) => table))}),
        (select count(*) from mikro_orm_migrations where name in (select name from ${list(migrations.map(({ name }) => name))})),
        ${behind.length > 0 ? `coalesce(${behind.join(', ')})` : 'null'}`,
  };
}

/**
 * Checks that the database accepts writes, that this role may read and write all tables, and that they are migrated.
 *
 * @param onReadOnly called before the check fails for a read-only server
 * @throws DatabaseUnavailable
 */
export async function assertServable(
  orm: MikroORM,
  server: PostgresServer,
  model: Model,
  onReadOnly: () => void,
): Promise<void> {
  const [row] = await server.rows<Readiness>(readinessOf(orm, model), []).catch((error) => {
    throw sqlState(error) === '42501' ? new DatabaseUnavailable(mayNot, error) : error;
  });
  const [isReadOnly, mayWrite, applied, behind] = row as Readiness;
  if (isReadOnly === 't') {
    onReadOnly();
    throw new DatabaseUnavailable('The database is read-only; it may be a standby.');
  }
  if (mayWrite !== 't') throw new DatabaseUnavailable(mayNot);
  if (Number(applied) < model.migrations.length) throw new DatabaseUnavailable('The database lacks migrations.');
  if (behind)
    throw new DatabaseUnavailable(`Every creation fails: the ids of ${behind} are behind its rows. Run \`migrate\`.`);
}

/** The names of the migrations that the database lacks. @throws DatabaseUnavailable */
export async function pendingMigrations({ rows: ask }: PostgresServer, { migrations }: Model): Promise<string[]> {
  const names = migrations.map(({ name }) => name);
  const text = 'select name from mikro_orm_migrations where name = any($1::text[])';
  const rows = await ask({ name: 'migrated', text }, [names]).catch((error) => {
    if (isUnmigrated(error)) return [];
    throw error;
  });
  const applied = new Set(rows.map(([name]) => name));
  return names.filter((name) => !applied.has(name));
}

/** A table whose ids come from a counter. */
export interface CountedTable {
  readonly table: string;
  readonly column: string;
  /** See `endOfCounter`. */
  readonly end: bigint;
}

/** Larger ids do not advance the counter: too few ids would remain. @param type of the column */
export function endOfCounter(type: string): bigint {
  return type === 'bigserial' ? 2n ** 63n - 2n ** 32n : 2n ** 31n - 2n ** 20n;
}

export function countedTables(orm: MikroORM): CountedTable[] {
  return [...orm.getMetadata().getAll().values()].flatMap(({ tableName: table, props }) => {
    const id = props.find(({ autoincrement }) => autoincrement);
    if (!id) return [];
    return [{ table, column: `${id.fieldNames[0]}`, end: endOfCounter(`${id.columnTypes[0]}`) }];
  });
}

/** SQL of the sequence behind a table's ids. */
export function counterOf({ table, column }: CountedTable): string {
  return `pg_get_serial_sequence(${literal(quoted(table))}, ${literal(column)})::regclass`;
}

/**
 * Sets each counter past the greatest id of its rows. Rows that were inserted with ids (COPY, a restored backup) do not
 * advance the counter, and every later insert would fail. No row is inserted meanwhile: an insert takes the same lock.
 */
export async function advanceCounters(rows: RunStatement, orm: MikroORM, log: Log | undefined): Promise<void> {
  for (const one of countedTables(orm)) {
    const { table, column, end } = one;
    const counter = counterOf(one);
    // Two statements, because Citus rejects one. The greatest id is read first: an insert draws its id before its row
    // is visible.
    const text = `select max(${quoted(column)}) filter (where ${quoted(column)} < ${end}), max(${quoted(column)}) from ${quoted(table)}`;
    const [[greatest, last] = []] = await rows({ name: `greatest_${table}`, text }, []);
    if (greatest) {
      const text = `
        with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(table)}))::text)
        select setval(${counter}, $1::bigint) from lock where coalesce(pg_sequence_last_value(${counter}), 0) < $1::bigint`;
      const [[moved] = []] = await rows({ name: `advance_counter_${table}`, isWrite: true, text }, [greatest]);
      if (moved) log?.warn({ table, greatest }, 'the id counter was behind the rows; it was advanced');
    }
    if (last && BigInt(last) >= end) {
      const message =
        'a row is at the end of the range of ids: new rows have smaller ids, and readers that have passed it miss them';
      log?.warn({ table, greatest: last }, message);
    }
  }
}
