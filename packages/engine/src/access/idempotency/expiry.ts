import type { FastifyInstance } from 'fastify';
import type { Database, Statement } from '../../database/database.ts';
import { every } from '../background.ts';

const maxRows = 1000;

// Two statements, because a combined one may select different rows on each
// Citus node.
const selectExpired: Statement = {
  name: 'select_expired_idempotency_keys',
  text: `
    select key_id, operation, hash::text from idempotency_key
    where created_at < now() - make_interval(hours => $1::int)
    order by created_at limit ${maxRows}`,
};
const removeExpired: Statement = {
  name: 'remove_expired_idempotency_keys',
  isWrite: true,
  text: `
    delete from idempotency_key as stored
    using unnest($1::int[], $2::text[], $3::bytea[])
      as expired (key_id, operation, hash)
    where (stored.key_id, stored.operation, stored.hash)
        = (expired.key_id, expired.operation, expired.hash)
      and created_at < now() - make_interval(hours => $4::int)`,
};

/**
 * Removes the oldest keys, at most 1,000, of those older than `hours`.
 *
 * @returns whether there may be more
 */
export async function removeExpiredKeys(
  database: Pick<Database, 'rows'>,
  hours: number,
) {
  const keys = await database.rows<[string, string, string]>(selectExpired, [
    hours,
  ]);
  if (keys.length > 0) {
    const columns = [0, 1, 2].map((at) => keys.map((key) => key[at]));
    await database.rows(removeExpired, [...columns, hours]);
  }
  return keys.length === maxRows;
}

/**
 * Removes expired keys while the service runs.
 *
 * @param hours minimum retention of a key
 * @param pause average milliseconds between two removals when no expired keys
 *   are left
 */
export function expireIdempotencyKeys(
  app: FastifyInstance,
  database: Pick<Database, 'rows'>,
  hours: number,
  pause = 60_000,
) {
  const message = 'expired idempotency keys are not removed yet';
  every(app, pause, () => removeExpiredKeys(database, hours), message);
}
