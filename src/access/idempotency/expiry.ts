import { setTimeout as sleep } from 'node:timers/promises';
import { defineEntity, p } from '@mikro-orm/core';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';
import type { Database } from '../../storage/database/database.ts';
import type { Statement } from '../../storage/records/sql.ts';

const idempotencyKeySchema = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_key',
  properties: {
    /** The caller's key; 0 is the key from the configuration. A rotated one stays the same. */
    keyId: p.integer().primary(),
    /** The name in the API, the same for REST and GraphQL: `createPet`. */
    operation: p.text().primary(),
    /** SHA-256 of what the client calls its request by. */
    hash: p.blob().primary(),
    /** SHA-256 of the checked input. */
    fingerprint: p.blob(),
    /** What the database has generated for the row, as its texts, the id first. The rest of the row is the input. */
    generated: p.array(),
    createdAt: p.datetime().defaultRaw('now()').index(),
  },
});

/** The table `idempotency_key`: creations that are not to happen twice. It holds nothing that a client has written. */
export class IdempotencyKey extends idempotencyKeySchema.class {}

idempotencyKeySchema.setClass(IdempotencyKey);

const maxRows = 1000;

// Two statements, because Citus may select other rows on each node where they are selected and removed in one.
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

/** Removes the oldest of the keys older than `hours`, at most 1,000. @returns whether there may be more */
export async function removeExpiredKeys(database: Pick<Database, 'rows'>, hours: number): Promise<boolean> {
  const keys = await database.rows<[string, string, string]>(selectExpired, [hours]);
  if (keys.length > 0) {
    const columns = [0, 1, 2].map((at) => keys.map((key) => key[at]));
    await database.rows(removeExpired, [...columns, hours]);
  }
  return keys.length === maxRows;
}

export interface ExpiryOptions {
  database: Pick<Database, 'rows'>;
  /** How long a key is kept at least. */
  hours: number;
  /** Milliseconds between two looks when nothing is left, on average. */
  pause?: number;
}

/** How long (ms) the database serves others between two removals. */
const shortPause = 20;

/** Removes expired keys for as long as the service runs. Pauses are of random length, so that processes take turns. */
export const idempotencyKeyExpiry = fastifyPlugin<ExpiryOptions>(
  async (app: FastifyInstance, { database, hours, pause = 60_000 }) => {
    const closing = new AbortController();
    const isOver = (milliseconds: number) =>
      sleep(milliseconds * (0.5 + Math.random()), false, { signal: closing.signal, ref: false }).catch(() => true);
    const run = async () => {
      for (let next = pause; !(await isOver(next)); ) {
        const isMore = await removeExpiredKeys(database, hours).catch((err: unknown) => {
          // An unreachable database has its own lines in the log.
          const level = err instanceof StoreError ? 'debug' : 'warn';
          app.log[level]({ err }, 'expired idempotency keys are not removed yet');
          return false;
        });
        next = isMore ? shortPause : pause;
      }
    };
    const running = run();
    app.addHook('onClose', async () => {
      closing.abort();
      await running;
    });
  },
  { name: 'idempotency-key-expiry' },
);
