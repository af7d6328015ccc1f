import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';
import type { Database } from '../../storage/database/database.ts';
import type { Statement } from '../../storage/records/statement.ts';

const mostRows = 1000;
/** How long (ms) a process removes keys without a pause, and how long the pause is on average if there are more. */
const longestRound = 10_000;
const shortPause = 1000;

// Two statements, because Citus may choose other rows on each node where they are chosen and removed in one.
const selectExpired: Statement = {
  name: 'select_expired_idempotency_keys',
  text: `
    select key_id, operation, hash::text from idempotency_key
    where created_at < now() - make_interval(hours => $1::int) order by created_at limit ${mostRows}`,
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

/** Removes idempotency keys whose time is over. */
export class IdempotencyKeyExpiry {
  readonly #database: Database;
  readonly #hours: number;

  /** @param hours how long a key is kept at least */
  constructor(database: Database, hours: number) {
    this.#database = database;
    this.#hours = hours;
  }

  /** Removes the oldest, a thousand at most. @returns whether there may be more */
  async removeSome(): Promise<boolean> {
    const keys = await this.#database.rows<[string, string, string]>(selectExpired, [this.#hours]);
    if (keys.length > 0) {
      const columns = [0, 1, 2].map((at) => keys.map((key) => key[at]));
      await this.#database.rows(removeExpired, [...columns, this.#hours]);
    }
    return keys.length === mostRows;
  }
}

export interface ExpiryOptions {
  database: Database;
  hours: number;
  /** Milliseconds until it begins, on average. */
  firstPause?: number;
  /** Milliseconds on average until it looks again when nothing was left. */
  pause?: number;
}

/** Removes expired keys all the time: a little, then a pause of random length, so that not all processes do it at once. */
export const idempotencyKeyExpiry = fastifyPlugin<ExpiryOptions>(
  async (app: FastifyInstance, { database, hours, firstPause = 20_000, pause = 60_000 }) => {
    const expiry = new IdempotencyKeyExpiry(database, hours);
    let isClosed = false;
    let round: Promise<void> = Promise.resolve();
    let timer: NodeJS.Timeout;
    const schedule = (milliseconds: number) => {
      timer = setTimeout(
        () => {
          round = removeFor(longestRound).then((isMore) => {
            if (!isClosed) schedule(isMore ? shortPause : pause);
          });
        },
        milliseconds * (0.5 + Math.random()),
      ).unref();
    };
    const removeFor = async (milliseconds: number): Promise<boolean> => {
      const end = performance.now() + milliseconds;
      try {
        while (!isClosed && performance.now() < end) if (!(await expiry.removeSome())) return false;
        return true;
      } catch (err) {
        // A database that is away has its own lines in the log.
        app.log[err instanceof StoreError ? 'debug' : 'warn']({ err }, 'expired idempotency keys are not removed yet');
        return false;
      }
    };
    schedule(firstPause);
    app.addHook('onClose', async () => {
      isClosed = true;
      clearTimeout(timer);
      await round;
    });
  },
  { name: 'idempotency-key-expiry' },
);
