import { setTimeout as sleep } from 'node:timers/promises';
import type { Constructor, MigrationObject } from '@mikro-orm/core';
import type { Migration } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import { type Client, escapeLiteral } from 'pg';
import { retry } from '../retry.ts';
import { type DatabaseOptions, type Model, ormOptions } from './options.ts';
import {
  isConflict,
  leavesOutcomeUnknown,
  sqlState,
} from './postgres-errors.ts';
import { endPool, poolOf } from './postgres-server.ts';
import { Sessions } from './sessions.ts';

/**
 * How a migration waits for its locks: the time (ms) of one attempt, the number
 * of attempts, and the average pause (ms) between two.
 *
 * A statement that waits for a table lock blocks all later statements, even
 * reads. Two seconds are a fifth of DATABASE_STATEMENT_TIMEOUT_MS, so blocked
 * statements still succeed, and the pauses let others through. All attempts
 * together outlast a slow report, but not a backup.
 */
export const migrationRetries = {
  lockTimeout: 2000,
  attempts: 30,
  pause: 1500,
};
type MigrationOptions = DatabaseOptions & {
  retries: typeof migrationRetries;
  schema: string | undefined;
};

/**
 * Applies pending migrations, each in one transaction together with its row in
 * mikro_orm_migrations. A migration that opts out (`isTransactional`) is tried
 * once, without timeouts, because a failure may leave it half applied.
 *
 * @returns the names of those applied.
 */
export async function applyMigrations(
  options: MigrationOptions,
  model: Model,
  pending: string[],
  assertHeld: AssertHeld,
) {
  const orm = new MikroORM(await migratorOptions(options, model));
  const pool = await poolOf(orm);
  const applied: string[] = [];
  try {
    for (const { name, class: Released } of model.migrations) {
      if (!pending.includes(name)) continue;
      await assertHeld();
      const began = performance.now();
      const { driver, config, migrator } = orm;
      const isTransactional = new Released(driver, config).isTransactional();
      const up = () => migrator.up({ migrations: [name] });
      const work = isTransactional ? withLockRetries(up, name, options) : up();
      await work.catch((cause) => {
        const isUnknown = !isTransactional || leavesOutcomeUnknown(cause);
        const outcome = isUnknown
          ? 'may be applied in part'
          : 'was rolled back';
        const left = pending.slice(applied.length + 1);
        const sentences = [
          `The migration ${name} ${outcome}: ${cause.message}.`,
          remediesByState[`${sqlState(cause)}`] ?? [],
          `Applied before: ${applied.join(', ') || 'none'}.`,
          `Not applied: ${left.join(', ') || 'no other'}.`,
        ];
        throw new Error(sentences.flat().join(' '), { cause });
      });
      const ms = Math.round(performance.now() - began);
      options.log?.info({ migration: name, ms }, 'migration applied');
      applied.push(name);
    }
  } finally {
    await endPool(orm, pool);
  }
  return applied;
}

const wasRewritten =
  'An earlier text of it may have been applied: drop what that created, or remove the local store (`.data`).';

/** By PostgreSQL's codes. */
const remediesByState: Record<string, string> = {
  '42501':
    'Its role needs the right: `grant usage, create on schema ... to ...`.',
  '42P07': wasRewritten,
  '42701': wasRewritten,
  '42710': wasRewritten,
};

async function migratorOptions(options: MigrationOptions, model: Model) {
  const unlimited = { ...options, statementTimeout: 0, advice: undefined };
  const sessions = new Sessions(unlimited);
  const config = await sessions.detect();
  const { schema = 'public' } = sessions;
  if (options.schema !== sessions.schema) {
    throw new Error(
      `DATABASE_DIRECT_URL creates tables in the schema ${schema}, DATABASE_URL in ${options.schema}: give both the same search_path.`,
    );
  }
  // For migrations without a transaction; the role may have a timeout. Poolers
  // get no options.
  if (config.options) config.options += ' -c lock_timeout=0';
  const migrations = model.migrations.map((migration) =>
    withLimits(migration, options.retries.lockTimeout),
  );
  // The table of applied migrations is in the schema, too.
  return { ...ormOptions(options, { ...model, migrations }, config), schema };
}

/** Wraps a migration so that it first sets the timeouts of its transaction. */
function withLimits(
  { name, class: released }: MigrationObject,
  lockTimeout: number,
) {
  const Released = released as Constructor<Migration>;
  class Limited extends Released {
    override async up() {
      if (this.isTransactional()) {
        await this.execute(withoutLimits);
        await this.execute(`set local lock_timeout = ${lockTimeout}`);
      }
      // `super.up()` does not compile: `up` is abstract.
      await Released.prototype.up.call(this);
      for (const one of this.getQueries().splice(0)) await this.execute(one);
    }

    /** Names the statement in its error. */
    override async execute(...query: Parameters<Migration['execute']>) {
      return super.execute(...query).catch((error) => {
        error.message += `, at: ${String(query[0]).trim().replace(/\s+/g, ' ')}`;
        throw error;
      });
    }
  }
  return { name, class: Limited };
}

/**
 * Repeats a migration that did not get its locks; its transaction was rolled
 * back.
 */
function withLockRetries<T>(
  up: () => Promise<T>,
  migration: string,
  { log, retries }: MigrationOptions,
) {
  const { attempts, pause } = retries;
  return retry(up, (error, attempt) => {
    const isLocked = sqlState(error) === '55P03';
    if (!isLocked && !isConflict(error)) return undefined;
    if (attempt < attempts) {
      log?.warn({ migration, attempt }, 'a migration is waiting for a lock');
      return pause;
    }
    const message = `it did not get its locks in ${attempts} attempts. A session holds a lock on its table: find it in pg_stat_activity, end it, and start again`;
    throw new Error(message, { cause: error });
  });
}

/** Throws when the exclusive lock has been lost. */
export type AssertHeld = () => Promise<void>;

/**
 * Milliseconds between two attempts, between two log lines, and until a waiting
 * node gives up.
 */
const waiting = { pause: 200, logInterval: 30_000, limit: 3_600_000 };

/**
 * Lifts timeouts of the role or the database, for this transaction only: a
 * session's `set` would reach the pooler's next client. transaction_timeout
 * exists since PostgreSQL 17.
 */
export const withoutLimits = `
  select set_config(name, '0', true) from pg_settings where name in (
    'statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * Runs work that only one process at a time may do to this database.
 *
 * Holds a transaction-level advisory lock in a separate session while the work
 * uses other sessions. A pooler keeps a transaction on one connection, and the
 * lock ends with it. A session-level lock would stay with the pooler.
 *
 * @throws Error when the lock is not available, or was lost before the work was
 *   done.
 */
export async function exclusivelyIn<T>(
  session: Client,
  options: DatabaseOptions,
  work: (assertHeld: AssertHeld) => Promise<T>,
): Promise<T> {
  await acquire(session, options);
  const assertHeld = async () => {
    await session.query('select 1').catch(lost);
  };
  const result = await work(assertHeld);
  // PostgreSQL answers the commit of a failed transaction with ROLLBACK.
  const { command } = await session.query('commit').catch(lost);
  return command === 'COMMIT' ? result : lost();
}

/**
 * Polls for the lock, with no open transaction between two attempts. A node
 * that waited inside a statement would keep its snapshot, and `create index
 * concurrently` on the migrating node waits for all older snapshots: a
 * deadlock. The isolation level is explicit for the same reason: a repeatable
 * read would keep its snapshot.
 */
async function acquire(session: Client, { name, log }: DatabaseOptions) {
  const began = performance.now();
  let nextNote = 0;
  while (!(await attempt(session, name))) {
    const ms = Math.round(performance.now() - began);
    if (ms > waiting.limit)
      throw new Error('Another node has been migrating for an hour.');
    if (ms >= nextNote) {
      log?.warn({ ms }, 'waiting for another node’s migrations');
      nextNote = ms + waiting.logInterval;
    }
    await sleep(waiting.pause * (0.5 + Math.random()));
  }
}

async function attempt(session: Client, name: string) {
  // One round trip, because the timeout for idle transactions may be short.
  await session.query(`begin isolation level read committed; ${withoutLimits}`);
  const key = `hashtext(${escapeLiteral(`${name} migrations`)})`;
  const { rows } = await session.query<{ acquired: boolean }>(
    `select pg_try_advisory_xact_lock(${key}) as acquired`,
  );
  const acquired = rows[0]?.acquired === true;
  if (!acquired) await session.query('rollback');
  return acquired;
}

function lost(cause?: unknown): never {
  const message =
    'The migration lock was lost before the migrations were done; another node may have migrated meanwhile.';
  throw new Error(message, { cause });
}
