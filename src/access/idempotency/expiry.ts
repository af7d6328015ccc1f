import { defineEntity, p } from '@mikro-orm/core';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Database, Statement } from '../../database/database.ts';
import { logPostponed } from '../write-behind.ts';

const idempotencyKeyTable = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_key',
  properties: {
    /**
     * The caller's key; 0 is the configured key. Rotation does not change it.
     */
    keyId: p.integer().primary(),
    /** The name in the API, the same for REST and GraphQL: `createPet`. */
    operation: p.text().primary(),
    /** SHA-256 of the client's `Idempotency-Key`. */
    hash: p.blob().primary(),
    /** SHA-256 of the validated input, and the names of its members. */
    fingerprint: p.blob(),
    /**
     * The generated values of the row as PostgreSQL's texts, the id first. The
     * input contains the others.
     */
    generated: p.array(),
    createdAt: p.datetime().defaultRaw('now()').index(),
  },
});

/**
 * The table `idempotency_key`: creations that must not be repeated. It contains
 * no client data.
 */
export class IdempotencyKey extends idempotencyKeyTable.class {}

idempotencyKeyTable.setClass(IdempotencyKey);

const maxRows = 1000;

// Two statements, because a combined one may select different rows on each
// Citus node.
const selectExpired: Statement = {
  name: 'select_expired_idempotency_keys',
  text: `
    select key_id, operation, hash::text from idempotency_key
    where created_at < now() - make_interval(hours => $1::int) order by created_at limit ${maxRows}`,
};
const removeExpired: Statement = {
  name: 'remove_expired_idempotency_keys',
  isWrite: true,
  text: `
    delete from idempotency_key as stored
    using unnest($1::int[], $2::text[], $3::bytea[]) as expired (key_id, operation, hash)
    where (stored.key_id, stored.operation, stored.hash) = (expired.key_id, expired.operation, expired.hash)
      and created_at < now() - make_interval(hours => $4::int)`,
};

/**
 * Removes the oldest of the keys older than `hours`, at most 1,000. @returns
 * whether there may be more
 */
export async function removeExpiredKeys(
  database: Pick<Database, 'rows'>,
  hours: number,
): Promise<boolean> {
  const keys = await database.rows<[string, string, string]>(selectExpired, [
    hours,
  ]);
  if (keys.length > 0) {
    const columns = [0, 1, 2].map((at) => keys.map((key) => key[at]));
    await database.rows(removeExpired, [...columns, hours]);
  }
  return keys.length === maxRows;
}

interface ExpiryOptions {
  database: Pick<Database, 'rows'>;
  /** Minimum retention of a key. */
  hours: number;
  /**
   * Average milliseconds between two removals when no expired keys are left.
   */
  pause?: number;
}

/**
 * Pause (ms) between two removals while expired keys are left, so that requests
 * get their turn.
 */
const shortPause = 20;

/**
 * Removes expired keys while the service runs. Pauses have jitter, so that
 * processes take turns.
 */
export const idempotencyKeyExpiry = fastifyPlugin<ExpiryOptions>(
  async (app: FastifyInstance, { database, hours, pause = 60_000 }) => {
    let timer: NodeJS.Timeout | undefined;
    let removal = Promise.resolve();
    const removeAfter = (milliseconds: number) => {
      timer = setTimeout(
        () => (removal = remove()),
        milliseconds * (0.5 + Math.random()),
      ).unref();
    };
    const remove = async () => {
      const isMore = await removeExpiredKeys(database, hours).catch((error) => {
        logPostponed(
          app,
          error,
          'expired idempotency keys are not removed yet',
        );
      });
      removeAfter(isMore ? shortPause : pause);
    };
    removeAfter(pause);
    app.addHook('onClose', async () => {
      await removal;
      clearTimeout(timer);
    });
  },
  { name: 'idempotency-key-expiry' },
);
