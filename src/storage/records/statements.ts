import { int64 } from '../input/int64.ts';
import { literal, quoted, type Statement } from './sql.ts';
import type { Column, Table } from './table.ts';

/**
 * The statements behind `Records`, each for a whole batch. They are SQL rather than `em.find` and a query builder
 * because hydrating entities costs several times the query itself here (`bench/README.md`), and because no builder
 * writes `unnest ... cross join lateral`. Names and types are the entity's.
 */
export interface Statements {
  listAll: Statement;
  listFiltered: Statement;
  listMany: Statement;
  last: Statement;
  horizon: Statement;
  find: Statement;
  insert: Statement;
  insertOnce: Statement;
}

/** @param filter the column by which lists may be filtered; it needs an index on it and the id */
export function statementsFor(described: Table, filter?: Column): Statements {
  const { name: unquoted, columns, inserted, generated } = described;
  const table = quoted(unquoted);
  const names = columns.map(({ name }) => name).join(', ');
  const list = aggregated(columns);
  // A row comparison, which is a range of the index on (filter, id). With `status = $3 and id > $1` PostgreSQL's
  // generic plan may scan the primary key instead and discard most rows, the more the rarer a status is.
  const { name: filtered = 'id', type: filterType = 'text' } = filter ?? {};
  const within = (value: string, after: string) =>
    `(${filtered}, id) > (${value}, ${after}) and (${filtered}, id) <= (${value}, ${int64.max})`;
  const branch = `union all
          (select ${names} from ${table}
            where wanted.filter is not null and ${within('wanted.filter', 'wanted.after')}
            order by ${filtered}, id limit wanted."limit")`;
  const statement = (name: string, text: string, by = ''): Statement => ({ name: `${name}_${unquoted}${by}`, text });
  // There may be records of one table with different filters.
  const by = filter ? `_by_${filter.member}` : '';
  const filterable = (name: string, text: string) => statement(name, text, by);
  return {
    last: statement('last', `select max(id)::text from ${table}`),
    // Ids are drawn under this lock, which is held until they are visible on every node. While it is held here, too, none
    // is drawn, so all rows up to the last id are visible to the statements that follow.
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
    // Two branches instead of `wanted.filter is null or ...`: an index serves each, and PostgreSQL skips the branch
    // whose one-time filter is false.
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
    // The lock makes rows visible in the order of their ids: a reader that has passed id 7 never misses a 6 that was
    // still being written. It is held from before the first id is drawn until the commit is visible.
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

/**
 * Selects a list as one row with one text per column. That costs PostgreSQL as much as rows do, and us a third of
 * reading rows. Values without commas are joined by commas, with an empty text for null (no such value has an empty
 * text); the other columns are JSON arrays. Aggregates without `order by` take rows in the order of the subquery
 * (PostgreSQL's manual, section 9.21).
 */
function aggregated(columns: readonly Column[]): string {
  return columns
    .map(({ name, text, isWord, isNullable }) => {
      if (isWord) return `string_agg(${isNullable ? `coalesce(${text}, '')` : text}, ',') as ${name}`;
      return `json_agg(${text}) as ${name}`;
    })
    .join(', ');
}

/**
 * Inserts rows of which some have an idempotency claim, together with these claims: all are visible at once, or none.
 *
 * Its last parameters are the claims' key ids, operations, hashes and fingerprints, all null for a row without one. It
 * returns a row for each place (from 1): null and the generated values, as a JSON array of texts; or, where a claim is
 * known, its fingerprint in hexadecimal and the values that were generated then. A claim that another process has stored
 * between the snapshot of this statement and its lock has no row: nothing was inserted, and the next statement knows it.
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
    // The cast is for Citus, which keeps no column of type void. `limit` makes PostgreSQL use the index for each claim,
    // where a join scans the whole table until that has been analysed.
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
