import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from './postgres-server.ts';

/**
 * How those who follow a table see the rows of transactions in the order of
 * their ids. `locked`: one transaction creates rows after another. `marked`:
 * each creates rows at once, and followers read up to the first id that an open
 * one may have drawn.
 */
export type Order = 'locked' | 'marked';

/** The lock that an insertion takes, too (`records/insertions.ts`). */
export const lockIds: Statement = {
  name: 'lock_ids',
  text: `select pg_advisory_xact_lock(hashtext(name))::text
    from (select unnest($1::text[]) as name order by name) as locked`,
};

const lastDrawn = 'coalesce(pg_sequence_last_value(sequence), 0)';

/** The lock of a transaction names the last id before its first one. */
export const markIds: Statement = {
  name: 'mark_ids',
  text: `select pg_advisory_xact_lock_shared(sequence::oid::int, ${lastDrawn}::bit(32)::int)::text
    from (select pg_get_serial_sequence(quote_ident(name), 'id')::regclass as sequence
      from unnest($1::text[]) as name) as marked`,
};

/**
 * The last id up to which all rows of a marked table are visible. Insertions
 * outside of transactions are awaited by their lock, which they hold for a
 * statement. Ids are read before marks, so that a later mark is of later ids.
 *
 * An objid is an id modulo 2^32; it is one near the last id.
 */
export function lastVisible(table: string): Statement {
  const sequence = `pg_get_serial_sequence(${literal(quoted(table))}, 'id')::regclass`;
  return {
    name: `visible_${table}`,
    text: `with lock as materialized (select pg_advisory_xact_lock_shared(hashtext(${literal(table)}))::text),
      last as materialized (select sequence, ${lastDrawn} as id from lock, (select ${sequence} as sequence) as own)
      select least(id, (
        select min(id - ((id - objid::bigint + 2147483648) & 4294967295) + 2147483648)
        from pg_locks where locktype = 'advisory' and objsubid = 2 and classid = sequence::oid
          and database = (select oid from pg_database where datname = current_database())
      ))::text from last`,
  };
}
