import type { Statement } from './sql.ts';
import { literal, quoted } from './sql.ts';
import type { Table } from './table.ts';

/** The name by which a client makes a creation happen once, however often it is sent. */
export interface Once {
  /** Whose name it is: the id of an API key; 0 for the one from the configuration. */
  readonly keyId: number;
  /** The creation, as the API calls it: `createPet`. */
  readonly operation: string;
  /** SHA-256 of the name. */
  readonly hash: Buffer;
  /** Is told, when it has happened, whether that was at an earlier request. */
  settled(isReplay: boolean): void;
}

/**
 * Inserts rows of which some have a name (`Once`), together with these names: all are visible at once, or none.
 *
 * Its last parameters are the names' key ids, operations, hashes and fingerprints, all null for a row without one. It
 * returns a row for each place (from 1): null and what was generated, as a JSON array of texts; or, where a name is
 * known, the fingerprint in hexadecimal and what was generated then. A name that another process has stored between the snapshot of
 * this statement and its turn has no row: nothing was inserted, and the next statement knows it.
 */
export function insertOnceFor({ name, inserted, generated }: Table): Statement {
  const table = quoted(name);
  const names = inserted.map((column) => column.name);
  const types = [...inserted.map(({ type }) => type), 'int', 'text', 'bytea', 'bytea'];
  const values = inserted.map(({ name, fallback }) => (fallback ? `coalesce(${name}, ${fallback}) as ${name}` : name));
  const identity = '"#key", "#operation", "#hash"';
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // The cast is for Citus, which keeps no column of type void.
    text: `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text),
      input as materialized (
        select input.* from lock, unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')})
          with ordinality as input (${[...names, identity].join(', ')}, "#fingerprint", "#place")),
      known as materialized (
        select "#place", stored.fingerprint, stored.generated
        from input join idempotency_key as stored
          on (stored.key_id, stored.operation, stored.hash) = (${identity})),
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
