import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from './postgres-server.ts';

/**
 * How those who follow a table see the rows of transactions in the order of
 * their ids. `locked`: one transaction creates rows after another. `marked`:
 * each creates rows at once, and followers read up to the first id that an open
 * one may have drawn.
 */
export type RowOrder = 'locked' | 'marked';

const lastDrawn = 'coalesce(pg_sequence_last_value(sequence), 0)';

/** The locks of a transaction, by the order of their tables. */
export const orderLocks: Record<RowOrder, Statement> = {
  // That of an insertion, too (`records/insert-statements.ts`).
  locked: {
    name: 'lock_ids',
    text: `select pg_advisory_xact_lock(hashtext(name))::text
      from (select unnest($1::text[]) as name order by name) as locked`,
  },
  // It names the last id before the first one of the transaction.
  marked: {
    name: 'mark_ids',
    text: `select pg_advisory_xact_lock_shared(sequence::oid::int, ${lastDrawn}::bit(32)::int)::text
      from (select pg_get_serial_sequence(quote_ident(name), 'id')::regclass as sequence
        from unnest($1::text[]) as name) as marked`,
  },
};

/**
 * SQL for the least id that locks name, or the last one, `id`. An objid is an id
 * modulo 2^32; it is one near the last id.
 */
export const leastMarked = (sequence: string) => `least(id, (
  select min(id - ((id - objid::bigint + 2147483648) & 4294967295) + 2147483648)
  from pg_locks where locktype = 'advisory' and objsubid = 2
    and classid = ${sequence}::oid
    and database = (select oid from pg_database where datname = current_database())
))`;

/**
 * The last id up to which all rows of a marked table are visible. Insertions
 * outside of transactions are awaited by their lock, which they hold for a
 * statement. Ids are read before marks, so that a later mark is of later ids.
 */
export function lastVisible(table: string): Statement {
  const sequence = `pg_get_serial_sequence(${literal(quoted(table))}, 'id')::regclass`;
  return {
    name: `visible_${table}`,
    text: `with lock as materialized (select pg_advisory_xact_lock_shared(hashtext(${literal(table)}))::text),
      last as materialized (select sequence, ${lastDrawn} as id from lock, (select ${sequence} as sequence) as own)
      select ${leastMarked('sequence')}::text from last`,
  };
}
