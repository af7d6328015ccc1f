import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, escapeLiteral } from 'pg';
import type { DatabaseOptions } from './options.ts';

/** Throws when the exclusive lock has been lost. */
export type AssertHeld = () => Promise<void>;

/** Milliseconds between two attempts, between two log lines, and until a waiting node gives up. */
const waiting = { pause: 200, logInterval: 30_000, limit: 3_600_000 };

/**
 * Lifts timeouts of the role or the database, for this transaction only: a session's `set` would reach the pooler's next
 * client. transaction_timeout exists since PostgreSQL 17.
 */
export const withoutLimits = `
  select set_config(name, '0', true) from pg_settings where name in
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * Runs work that only one process at a time may do to this database.
 *
 * Holds a transaction-level advisory lock in a separate session while the work uses other sessions. A pooler keeps a
 * transaction on one connection, and the lock ends with it. A session-level lock would stay with the pooler.
 *
 * @throws Error when the lock is not available, or was lost before the work was done.
 */
export async function exclusivelyIn<T>(
  session: Client,
  options: DatabaseOptions,
  work: (assertHeld: AssertHeld) => Promise<T>,
): Promise<T> {
  await acquire(session, options);
  const result = await work(async () => void (await session.query('select 1').catch(lost)));
  // PostgreSQL answers the commit of a failed transaction with ROLLBACK.
  const { command } = await session.query('commit').catch(lost);
  return command === 'COMMIT' ? result : lost();
}

/**
 * Polls for the lock, with no open transaction between two attempts. A node that waited inside a statement would keep its
 * snapshot, and `create index concurrently` on the migrating node waits for all older snapshots: a deadlock. The isolation
 * level is explicit for the same reason: a repeatable read would keep its snapshot.
 */
async function acquire(session: Client, { name, log }: DatabaseOptions): Promise<void> {
  const began = performance.now();
  for (let nextNote = 0; !(await attempt(session, name)); await sleep(waiting.pause * (0.5 + Math.random()))) {
    const waited = Math.round(performance.now() - began);
    if (waited > waiting.limit) throw new Error('Another node has been migrating for an hour.');
    if (waited < nextNote) continue;
    log?.warn({ ms: waited }, 'waiting for another node’s migrations');
    nextNote = waited + waiting.logInterval;
  }
}

async function attempt(session: Client, name: string): Promise<boolean> {
  // One round trip, because the timeout for idle transactions may be short.
  await session.query(`begin isolation level read committed; ${withoutLimits}`);
  const key = `hashtext(${escapeLiteral(`${name} migrations`)})`;
  const { rows } = await session.query<{ acquired: boolean }>(`select pg_try_advisory_xact_lock(${key}) as acquired`);
  const acquired = rows[0]?.acquired === true;
  if (!acquired) await session.query('rollback');
  return acquired;
}

function lost(cause?: unknown): never {
  const message =
    'The migration lock was lost before the migrations were done; another node may have migrated meanwhile.';
  throw new Error(message, { cause });
}
