import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import type { Column, Table } from './table.ts';

export type Statements = ReturnType<typeof statementsFor>;

/**
 * The statements behind `Records`, each for a whole batch; `findOne` and
 * `insertOne` for a batch of one, because arrays cost PostgreSQL a third of a
 * small statement. They are SQL because hydrating entities costs several times
 * as much as the query (`bench/README.md`), and no query builder supports
 * `unnest ... cross join lateral`. Names and types come from the entity.
 */
export function statementsFor(described: Table) {
  const { name: unquoted, columns, inserted, generated } = described;
  const table = quoted(unquoted);
  const statement = (name: string, text: string): Statement => ({
    name: `${name}_${unquoted}`,
    text,
  });
  const row = `select ${columns.map(({ text }) => text).join(', ')} from ${table}`;
  // The lock makes rows visible in the order of their ids, so a reader that has
  // passed id 7 never misses a later 6. It is held from before the first id is
  // drawn until the commit is visible.
  const insertion = (
    name: string,
    value: (column: Column, at: number) => string,
    inputs = '',
  ): Statement => {
    const orDefault = (column: Column, at: number) =>
      column.fallback
        ? `coalesce(${value(column, at)}, ${column.fallback})`
        : value(column, at);
    const text = `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(unquoted)})))
        insert into ${table} (${inserted.map((column) => column.name).join(', ')})
        select ${inserted.map(orDefault).join(', ')} from lock${inputs}
        returning ${generated.map((column) => column.text).join(', ')}`;
    return { isWrite: true, ...statement(name, text) };
  };
  return {
    last: statement('last', `select max(id)::text from ${table}`),
    // An insert holds this lock from drawing its ids until they are visible on
    // every node. While this statement holds it, no id is drawn, so later
    // statements see all rows up to the last id.
    horizon: statement(
      'horizon',
      `with lock as materialized (select pg_advisory_xact_lock_shared(hashtext(${literal(unquoted)}))::text)
      select pg_sequence_last_value(pg_get_serial_sequence(${literal(table)}, 'id')::regclass)::text from lock`,
    ),
    find: statement('find', `${row} where id = any($1::bigint[])`),
    findOne: statement('find_one', `${row} where id = $1`),
    insert: insertion(
      'insert',
      ({ name, type }) => `input.${name}::${type}`,
      `, unnest(${inserted.map(({ parameter }, at) => `$${at + 1}::${parameter}[]`).join(', ')}) with ordinality
          as input (${inserted.map(({ name }) => name).join(', ')}, "#place")
        order by input."#place"`,
    ),
    insertOne: insertion('insert_one', ({ type }, at) => `$${at + 1}::${type}`),
    insertOnce: insertOnceFor(described),
  };
}

/**
 * Inserts rows and their idempotency claims, if any, atomically.
 *
 * The last parameters are the claims' key ids, operations, hashes and
 * fingerprints, all null for a row without a claim. It returns one row per
 * place (from 1): null and the generated values, as a JSON array of texts; for
 * a known claim, its fingerprint in hexadecimal and the values generated then.
 * If another process stores the same claim after this statement's snapshot, its
 * place is missing in the result: its item was not inserted, and a repetition
 * finds the claim.
 */
function insertOnceFor({ name, inserted, generated }: Table): Statement {
  const table = quoted(name);
  const names = inserted.map((column) => column.name);
  const types = [
    ...inserted.map(({ parameter }) => parameter),
    'int',
    'text',
    'bytea',
    'bytea',
  ];
  const values = inserted.map(({ name, type, fallback }) => {
    const value = `${name}::${type}`;
    const orDefault = fallback ? `coalesce(${value}, ${fallback})` : value;
    return `${orDefault} as ${name}`;
  });
  const identity = '"#key", "#operation", "#hash"';
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // The cast is for Citus, which cannot store a column of type void. `limit`
    // makes PostgreSQL use the index for each claim; a join would scan the
    // whole table until it has been analysed.
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
