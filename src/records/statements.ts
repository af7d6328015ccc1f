import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import { int64 } from '../validation/int64.ts';
import { maxExactTotal } from '../validation/page.ts';
import type { Column, Table } from './table.ts';

/**
 * The statements behind `Records`, each for a whole batch. They are SQL because hydrating entities costs several times
 * as much as the query (`bench/README.md`), and no query builder supports `unnest ... cross join lateral`. Names and
 * types come from the entity.
 */
export interface Statements {
  listAll: Statement;
  listFiltered: Statement;
  listMany: Statement;
  last: Statement;
  horizon: Statement;
  find: Statement;
  countAll: Statement;
  countFiltered: Statement;
  /** PostgreSQL's plan as JSON, with the estimated number of rows. */
  estimateAll: Statement;
  estimateFiltered: Statement;
  insert: Statement;
  insertOnce: Statement;
}

/** @param filter the column to filter lists by; it needs an index on (filter, id) */
export function statementsFor(described: Table, filter?: Column): Statements {
  const { name: unquoted, columns, inserted, generated } = described;
  const table = quoted(unquoted);
  const names = columns.map(({ name }) => name).join(', ');
  const list = aggregated(columns);
  // A row comparison is a range of the index on (filter, id). With `status = $3 and id > $1`, PostgreSQL's generic plan
  // may scan the primary key instead and discard most rows.
  const { name: filtered = 'id', type: filterType = 'text' } = filter ?? {};
  const within = (value: string, after: string) =>
    `(${filtered}, id) > (${value}, ${after}) and (${filtered}, id) <= (${value}, ${int64.max})`;
  const branch = `union all
          (select ${names} from ${table}
            where wanted.filter is not null and ${within('wanted.filter', 'wanted.after')}
            order by ${filtered}, id limit wanted."limit")`;
  const statement = (name: string, text: string, by = ''): Statement => ({ name: `${name}_${unquoted}${by}`, text });
  // Several `Records` of one table may have different filters, so the name contains the filter.
  const by = filter ? `_by_${filter.member}` : '';
  const filterable = (name: string, text: string) => statement(name, text, by);
  const rows = `select 1 from ${table}`;
  const filteredRows = `${rows} where ${filtered} = $1`;
  return {
    last: statement('last', `select max(id)::text from ${table}`),
    // An insert holds this lock from drawing its ids until they are visible on every node. While this statement holds
    // it, no id is drawn, so later statements see all rows up to the last id.
    horizon: statement(
      'horizon',
      `with lock as materialized (select pg_advisory_xact_lock_shared(hashtext(${literal(unquoted)}))::text)
      select pg_sequence_last_value(pg_get_serial_sequence(${literal(table)}, 'id')::regclass)::text from lock`,
    ),
    listAll: statement(
      'list',
      `select ${list} from (select ${names} from ${table} where id > $1 order by id limit $2) as item`,
    ),
    listFiltered: filterable(
      'list_filtered',
      `select ${list} from (
        select ${names} from ${table} where ${within('$3', '$1')} order by ${filtered}, id limit $2) as item`,
    ),
    // Two branches instead of `wanted.filter is null or ...`: each uses an index, and PostgreSQL skips the branch whose
    // one-time filter is false.
    listMany: filterable(
      'list_many',
      `select page.*
      from unnest($1::bigint[], $2::int[], $3::${filterType}[]) with ordinality as wanted (after, "limit", filter, place)
      cross join lateral (
        select ${list} from (
          (select ${names} from ${table}
            where wanted.filter is null and id > wanted.after order by id limit wanted."limit")
          ${filter ? branch : ''}
        ) as item
      ) as page
      order by wanted.place`,
    ),
    find: statement(
      'find',
      `select ${columns.map(({ text }) => text).join(', ')} from ${table} where id = any($1::bigint[])`,
    ),
    countAll: statement('count', countOf(rows)),
    countFiltered: filterable('count_filtered', countOf(filteredRows)),
    estimateAll: statement('estimate', `explain (format json) ${rows}`),
    estimateFiltered: filterable('estimate_filtered', `explain (format json) ${filteredRows}`),
    // The lock makes rows visible in the order of their ids, so a reader that has passed id 7 never misses a later 6.
    // It is held from before the first id is drawn until the commit is visible.
    insert: {
      isWrite: true,
      ...statement(
        'insert',
        `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(unquoted)})))
        insert into ${table} (${inserted.map(({ name }) => name).join(', ')})
        select ${inserted.map(({ name, fallback }) => (fallback ? `coalesce(input.${name}, ${fallback})` : `input.${name}`)).join(', ')}
        from lock, unnest(${inserted.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) with ordinality
          as input (${inserted.map(({ name }) => name).join(', ')}, "#place")
        order by input."#place"
        returning ${generated.map(({ text }) => text).join(', ')}`,
      ),
    },
    insertOnce: insertOnceFor(described),
  };
}

/** Counts rows, one more than the limit at most. */
function countOf(rows: string): string {
  return `select count(*) from (${rows} limit ${maxExactTotal + 1}) as item`;
}

/**
 * Selects a list as one row with one text per column. That costs PostgreSQL as much as separate rows, and this process
 * a third. Values that are safe to join are joined by commas, with an empty text for null; other columns are JSON
 * arrays. Aggregates without `order by` process rows in the order of the subquery (PostgreSQL's manual, section 9.21).
 */
function aggregated(columns: readonly Column[]): string {
  return columns
    .map(({ name, text, isSafeToJoin, isNullable }) => {
      if (isSafeToJoin) return `string_agg(${isNullable ? `coalesce(${text}, '')` : text}, ',') as ${name}`;
      return `json_agg(${text}) as ${name}`;
    })
    .join(', ');
}

/**
 * Inserts rows and their idempotency claims, if any, atomically.
 *
 * The last parameters are the claims' key ids, operations, hashes and fingerprints, all null for a row without a claim.
 * It returns one row per place (from 1): null and the generated values, as a JSON array of texts; for a known claim,
 * its fingerprint in hexadecimal and the values generated then. If another process stores the same claim after this
 * statement's snapshot, its place is missing in the result: its item was not inserted, and a repetition finds the
 * claim.
 */
function insertOnceFor({ name, inserted, generated }: Table): Statement {
  const table = quoted(name);
  const names = inserted.map((column) => column.name);
  const types = [...inserted.map(({ type }) => type), 'int', 'text', 'bytea', 'bytea'];
  const values = inserted.map(({ name, fallback }) => (fallback ? `coalesce(${name}, ${fallback}) as ${name}` : name));
  const identity = '"#key", "#operation", "#hash"';
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // The cast is for Citus, which cannot store a column of type void. `limit` makes PostgreSQL use the index for each
    // claim; a join would scan the whole table until it has been analysed.
    text: `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text),
      input as materialized (
        select input.* from lock, unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')})
          with ordinality as input (${[...names, identity].join(', ')}, "#fingerprint", "#place")),
      known as materialized (
        select "#place", stored.fingerprint, stored.generated
        from input cross join lateral (
          select fingerprint, generated from idempotency_key where (key_id, operation, hash) = (${identity}) limit 1
        ) as stored),
      ready as materialized (
        select *, array[${generated.map(({ text }) => text).join(', ')}] as "#generated" from (
          select nextval((select pg_get_serial_sequence(${literal(table)}, 'id')::regclass)) as id,
            ${[...values, identity].join(', ')}, "#fingerprint", "#place"
          from (select * from input where "#place" not in (select "#place" from known) order by "#place") as unknown
        ) as drawn),
      claimed as (
        insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
        select ${identity}, "#fingerprint", "#generated" from ready where "#hash" is not null
        on conflict do nothing
        returning key_id, operation, hash),
      accepted as materialized (
        select * from ready
        where "#hash" is null or (${identity}) in (select key_id, operation, hash from claimed)),
      inserted as (
        insert into ${table} (${['id', ...names].join(', ')})
        select ${['id', ...names].join(', ')} from accepted order by "#place")
      select "#place", null as fingerprint, to_json("#generated")::text from accepted
      union all
      select "#place", encode(fingerprint, 'hex'), to_json(generated)::text from known`,
  };
}
