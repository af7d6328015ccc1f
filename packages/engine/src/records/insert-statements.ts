/**
 * Makes the statements of creations. That of one sign (a module of the tests):
 *
 *   with lock as materialized (
 *     select pg_advisory_xact_lock(hashtext('sign'))::text
 *   )
 *   insert into "sign" ("name", "version")
 *   select $1::text, coalesce($2::int, 1) from lock
 *   returning "id"::text as "#0", "version"::text as "#1"
 *
 * Several signs, which a trigger may drop:
 *
 *   with lock as materialized (
 *     select pg_advisory_xact_lock(hashtext('sign'))::text
 *   ), inserted as (
 *     insert into "sign" ("name", "version")
 *     select input."name"::text, coalesce(input."version"::int, 1)
 *     from lock, unnest($1::text[], $2::int[]) with ordinality
 *       as input ("name", "version", "#place")
 *     order by input."#place"
 *     returning "id"::text as "#0", "version"::text as "#1"
 *   )
 *   select "#0", "#1" from inserted
 *   where 1 / ((select count(*) from inserted) = cardinality($1))::int = 1
 *
 * Signs with idempotency keys:
 *
 *   with lock as materialized (
 *     select pg_advisory_xact_lock(hashtext('sign'))::text
 *   ), input as materialized (
 *     select input.*
 *     from lock, unnest($1::text[], $2::int[],
 *         $3::int[], $4::text[], $5::bytea[], $6::bytea[])
 *       with ordinality as input ("name", "version",
 *         "#key", "#operation", "#hash", "#fingerprint", "#place")
 *   ), known as materialized (
 *     select "#place", stored.fingerprint, stored.generated
 *     from input cross join lateral (
 *       select fingerprint, generated from idempotency_key
 *       where (key_id, operation, hash) = ("#key", "#operation", "#hash")
 *       limit 1
 *     ) as stored
 *   ), ready as materialized (
 *     select
 *       nextval((
 *         select pg_get_serial_sequence('"sign"', 'id')::regclass
 *       )) as id,
 *       "name"::text as "name", coalesce("version"::int, 1) as "version",
 *       "#key", "#operation", "#hash", "#fingerprint", "#place"
 *     from (
 *       select * from input
 *       where "#place" not in (select "#place" from known) order by "#place"
 *     ) as unknown
 *   ), inserted as (
 *     insert into "sign" (id, "name", "version")
 *     select id, "name", "version" from ready order by "#place"
 *     returning id, array["id"::text, "version"::text] as "#generated"
 *   ), claimed as (
 *     insert into idempotency_key
 *       (key_id, operation, hash, fingerprint, generated)
 *     select "#key", "#operation", "#hash", "#fingerprint", "#generated"
 *     from inserted join ready using (id) where "#hash" is not null
 *   )
 *   select "#place", null as fingerprint, to_json("#generated")::text
 *   from inserted join ready using (id)
 *   where 1 / ((select count(*) from inserted)
 *     = (select count(*) from ready))::int = 1
 *   union all
 *   select "#place", encode(fingerprint, 'hex'), to_json(generated)::text
 *   from known
 *
 * They are SQL because no query builder supports `unnest`, and an EntityManager
 * costs several times as much as the statement (`bench/README.md`).
 */

import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import { unlessOvertaken } from '../database/through.ts';
import type { Column, Table } from './rows/table.ts';
import { type Trace, writerAt, writersAt } from './trace.ts';

export function insertionsInto(table: Table, lock: string, trace?: Trace) {
  return {
    several: insertInto(table, lock, false, trace),
    /** Arrays cost PostgreSQL a third of a small statement. */
    one: insertInto(table, lock, true, trace),
    once: insertOnceInto(table, lock, trace),
  };
}

/** A transaction has seen to its order (`database/order.ts`). */
export const noLock = 'lock as (select)';

/**
 * The lock makes rows visible in the order of their ids, so a reader that has
 * passed id 7 never misses a later 6. It is held from before the first id is
 * drawn until the commit is visible. The cast is for Citus, which cannot store a
 * column of type void.
 */
export const lockOf = ({ name }: Table) =>
  `lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text)`;

function insertInto(
  table: Table,
  lock: string,
  isSingle: boolean,
  trace?: Trace,
): Statement {
  const { name, inserted, generated } = table;
  const names = inserted.map(({ name }) => name).join(', ');
  const arrays = inserted.map(
    ({ parameter }, at) => `$${at + 1}::${parameter}[]`,
  );
  const inputs = `, unnest(${arrays.join(', ')}) with ordinality
          as input (${names}, "#place")
        order by input."#place"`;
  const values = inserted.map((column, at) => {
    const value = isSingle ? `$${at + 1}` : `input.${column.name}`;
    return orDefault(column, `${value}::${column.type}`);
  });
  const returned = generated
    .map(({ text }, at) => `${text} as "#${at}"`)
    .join(', ');
  const insertion = `insert into ${quoted(name)} (${names})
        select ${values.join(', ')} from lock${isSingle ? '' : inputs}
        returning ${returned}${trace?.created ?? ''}`;
  const at = inserted.length + 1;
  const stored = isSingle
    ? trace?.store('created', 'inserted', writerAt(at))
    : trace?.store('created', placed, writersAt(at));
  const count = isSingle ? '1' : 'cardinality($1)';
  const shown = generated.map((_, at) => `"#${at}"`).join(', ');
  const isChecked = trace || !isSingle;
  return {
    isWrite: true,
    name: `insert_${isSingle ? 'one_' : ''}${name}`,
    text: isChecked
      ? `with ${lock}, inserted as (${insertion})${stored ?? ''}
      select ${shown} from inserted where ${areAllIn(count)}`
      : `with ${lock} ${insertion}`,
  };
}

/** They are returned as they are inserted. */
const placed = `(select *, row_number() over () as "#place" from inserted) as placed`;

/**
 * SQL that is true when a statement has inserted this many rows. Otherwise a
 * trigger or a rule has dropped some: dividing by zero rolls all back, and
 * smaller parts find the dropped ones.
 */
function areAllIn(count: string) {
  return `1 / ((select count(*) from inserted) = ${count})::int = 1`;
}

function orDefault({ fallback }: Column, value: string) {
  return fallback ? `coalesce(${value}, ${fallback})` : value;
}

/**
 * Inserts rows and their idempotency claims, if any, atomically.
 *
 * The last parameters are the claims' key ids, operations, hashes and
 * fingerprints, all null for a row without a claim; then those of its trace, if
 * any. It returns one row per place (from 1): null and the generated values, as
 * a JSON array of texts; for a known claim, its fingerprint in hexadecimal and
 * the values generated then. It fails if another process stores a claim after
 * its snapshot (`isTaken`): a repetition finds the claim.
 */
function insertOnceInto(table: Table, lock: string, trace?: Trace): Statement {
  const { name, inserted, generated, copied } = table;
  const given = [...inserted, ...copied];
  const names = given.map((column) => column.name);
  const columns = ['id', ...names.slice(0, inserted.length)].join(', ');
  const types = [
    ...given.map(({ parameter }) => parameter),
    'int',
    'text',
    'bytea',
    'bytea',
  ];
  const values = given.map((column) => {
    const { name, type } = column;
    return `${orDefault(column, `${name}::${type}`)} as ${name}`;
  });
  const identity = '"#key", "#operation", "#hash"';
  const rows =
    '(select inserted.*, "#place" from inserted join ready using (id)) as placed';
  const writers = writersAt(types.length + 1);
  const stored = trace?.store('created', rows, writers);
  const areAsJudged = copied.map(({ name, path }) => {
    const by = table.column(`${path?.by}`).name;
    // A trigger of a module may have changed the relation.
    return unlessOvertaken(
      `inserted.${by} is not distinct from ready.${by} and inserted.${name} is distinct from ready.${name}`,
    );
  });
  const counted = areAllIn('(select count(*) from ready)');
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // `limit` makes PostgreSQL use the index for each claim; a join would scan
    // the whole table until it has been analysed.
    text: `with ${lock},
      input as materialized (
        select input.* from lock, unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')})
          with ordinality as input (${[...names, identity].join(', ')}, "#fingerprint", "#place")),
      known as materialized (
        select "#place", stored.fingerprint, stored.generated
        from input cross join lateral (
          select fingerprint, generated from idempotency_key where (key_id, operation, hash) = (${identity}) limit 1
        ) as stored),
      ready as materialized (
        select nextval((select pg_get_serial_sequence(${literal(quoted(name))}, 'id')::regclass)) as id,
          ${[...values, identity].join(', ')}, "#fingerprint", "#place"
        from (select * from input where "#place" not in (select "#place" from known) order by "#place") as unknown),
      inserted as (
        insert into ${quoted(name)} (${columns})
        select ${columns} from ready order by "#place"
        returning ${copied.length > 0 ? '*' : 'id'}, array[${generated.map(({ text }) => text).join(', ')}] as "#generated"${trace?.created ?? ''})${stored ?? ''},
      claimed as (
        insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
        select ${identity}, "#fingerprint", "#generated" from inserted join ready using (id) where "#hash" is not null)
      select "#place", null as fingerprint, to_json("#generated")::text from inserted join ready using (id)
      where ${[counted, ...areAsJudged].join(' and ')}
      union all
      select "#place", encode(fingerprint, 'hex'), to_json(generated)::text from known`,
  };
}
