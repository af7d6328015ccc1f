import type { EventLog } from '@animal-store/log/incident';
import type { MikroORM } from '@mikro-orm/postgresql';
import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import { Unavailable } from '../errors.ts';
import { differencesIn } from './columns.ts';
import type { Model } from './options.ts';
import { isUnmigrated, sqlState } from './postgres-errors.ts';
import type { PostgresServer, RunStatement } from './postgres-server.ts';

const mayNot = 'The role in DATABASE_URL may not read and write all tables.';

/**
 * One statement that reports whether the database accepts writes, whether this
 * role may read and write all tables, and how many migrations are applied.
 */
function readinessStatement(orm: MikroORM, { migrations }: Model) {
  const list = (texts: string[]) =>
    `unnest(array[${texts.map(literal).join(', ')}]::text[]) as name`;
  const tables = [...orm.getMetadata()]
    .filter(({ embeddable }) => !embeddable)
    .map(({ tableName }) => tableName);
  return {
    name: 'readiness',
    text: `
      select
        pg_is_in_recovery()
          or current_setting('transaction_read_only')::bool,
        (select bool_and(
            has_table_privilege(quote_ident(name), 'select')
            and has_table_privilege(quote_ident(name), 'insert'))
          from ${list(tables)})
        and (select bool_and(
            has_sequence_privilege(
              pg_get_serial_sequence(quote_ident(name), 'id'),
              'usage'))
          from ${list(countedTables(orm).map(({ table }) => table))}),
        (select count(*) from mikro_orm_migrations
          where name in (
            select name from ${list(migrations.map(({ name }) => name))}))`,
  };
}

/**
 * Checks that the database accepts writes, that this role may read and write
 * all tables, that they are migrated and have the columns of the entities, and
 * that no counter is behind its rows.
 *
 * @throws Unavailable
 */
export async function assertServable(
  orm: MikroORM,
  model: Model,
  checks: PostgresServer,
  primary: PostgresServer,
) {
  const { rows } = checks;
  const read = rows(readinessStatement(orm, model), []);
  const [[isReadOnly, mayWrite, applied] = []] = await read.catch((error) => {
    if (sqlState(error) === '42501') throw new Unavailable(mayNot, error);
    throw error;
  });
  if (isReadOnly === 't') {
    // The primary's address may now lead to another server.
    for (const server of [primary, checks]) server.discardSessions();
    throw new Unavailable('The database is read-only; it may be a standby.');
  }
  if (mayWrite !== 't') throw new Unavailable(mayNot);
  if (Number(applied) < model.migrations.length)
    throw new Unavailable('The database lacks migrations.');
  const differences = await differencesIn(rows, orm);
  const missing = differences.filter((one) => one.endsWith('not exist'));
  if (missing.length > 0)
    throw new Unavailable(
      `${missing.join(', ')}: a later release may have migrated the database.`,
    );
  const locked = new Set((await rows(lockedTables, [])).flat());
  for (const one of countedTables(orm)) {
    // One locked table must not take the others from clients.
    if (locked.has(one.table)) continue;
    if (await idBeyondCounter(rows, one))
      throw new Unavailable(
        `Every creation fails: the ids of ${one.table} are behind its rows. Run \`migrate\`.`,
      );
  }
}

/** Tables whose readers wait, also behind a lock that waits. */
const lockedTables = {
  name: 'locked_tables',
  text: `
    select relname from pg_locks join pg_class on pg_class.oid = relation
    where mode = 'AccessExclusiveLock'`,
};

const schemasOfPath = {
  name: 'schemas_of_path',
  text: `
    select schema,
      to_regclass(format('%I.mikro_orm_migrations', schema)) is not null
    from unnest(current_schemas(false))
      with ordinality as path (schema, place)
    order by place`,
};

/**
 * The names of the migrations that the database lacks, in the schema in which
 * tables are created.
 *
 * @throws Unavailable
 * @throws Error when no table can be created, or the store is in a later schema
 *   of the search_path
 */
export async function pendingMigrations(
  { rows: ask }: PostgresServer,
  { migrations }: Model,
) {
  const names = migrations.map(({ name }) => name);
  const path = await ask<[string, string]>(schemasOfPath, []);
  const first = path[0]?.[0];
  if (!first) throw new Error(noSchema);
  for (const [schema, isMigrated] of path) {
    if (isMigrated !== 't') continue;
    const text = `
      select name from ${quoted(schema)}.mikro_orm_migrations
      where name = any($1::text[])`;
    const statement = { name: `migrated_${schema}`, text };
    const rows = await ask(statement, [names]).catch((error) => {
      // Another application's table may have other columns, or be forbidden.
      const isForbidden = sqlState(error) === '42501' && schema !== first;
      if (isUnmigrated(error) || isForbidden) return [];
      throw error;
    });
    const applied = new Set(rows.map(([name]) => name));
    if (applied.size === 0) continue;
    if (schema !== first) throw new Error(inLaterSchema(schema, first));
    return names.filter((name) => !applied.has(name));
  }
  return names;
}

const noSchema =
  'The search_path has no schema that exists and that the role may use: create one, or set another search_path.';

const inLaterSchema = (schema: string, first: string) =>
  `The store is in the schema ${schema}, but ${first} is before it in the search_path, and new tables would be created there. Set a search_path that begins with ${schema}; for another store, one without ${schema}.`;

/**
 * A given id beyond this one does not advance the counter: too few would
 * remain.
 *
 * @param type of the column
 */
export function endOfCounter(type: string) {
  if (type === 'bigserial') return 2n ** 63n - 2n ** 32n;
  return 2n ** 31n - 2n ** 20n;
}

/**
 * The tables whose ids come from a counter; `counter` is the SQL of its
 * sequence.
 */
function countedTables(orm: MikroORM) {
  return [...orm.getMetadata()].flatMap(({ tableName: table, props }) => {
    const id = props.find(({ autoincrement }) => autoincrement);
    if (!id) return [];
    const column = `${id.fieldNames}`;
    const counter = `pg_get_serial_sequence(
      ${literal(quoted(table))}, ${literal(column)})::regclass`;
    const end = endOfCounter(`${id.columnTypes}`);
    return [{ table, column, counter, end }];
  });
}

type CountedTable = ReturnType<typeof countedTables>[number];

/** @returns the greatest id of a table whose counter is behind it */
async function idBeyondCounter(
  rows: RunStatement,
  { table, column, counter, end }: CountedTable,
) {
  // The id is read before the counter: an insert draws its id before its row is
  // visible. Citus accepts only a CTE.
  const text = `
    with greatest as materialized (
      select max(${quoted(column)}) as id from ${quoted(table)}
      where ${quoted(column)} < ${end})
    select id from greatest
    where id > coalesce(pg_sequence_last_value(${counter}), 0)`;
  const [[id] = []] = await rows({ name: `ids_${table}`, text }, []);
  return id;
}

/**
 * Sets each counter past the greatest id of its rows. Rows that were inserted
 * with ids (COPY, a restored backup) do not advance the counter, and every
 * later insert would fail. COPY writes ids into identity columns, too. No row
 * is inserted meanwhile: an insert takes the same lock.
 */
export async function advanceCounters(
  rows: RunStatement,
  orm: MikroORM,
  log: EventLog | undefined,
) {
  for (const one of countedTables(orm)) {
    const { table, counter } = one;
    const greatest = await idBeyondCounter(rows, one);
    if (!greatest) continue;
    // A second statement, because Citus rejects one.
    const text = `
      with lock as materialized (
        select pg_advisory_xact_lock(hashtext(${literal(table)}))::text)
      select setval(${counter}, $1::bigint) from lock
      where coalesce(pg_sequence_last_value(${counter}), 0) < $1::bigint`;
    const name = `advance_counter_${table}`;
    const [moved] = await rows({ name, isWrite: true, text }, [greatest]);
    if (moved)
      log?.warn(
        { table, greatest },
        'the id counter was behind the rows; it was advanced',
      );
  }
}
