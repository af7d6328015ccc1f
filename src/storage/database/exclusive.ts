import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Log } from './options.ts';

/** Throws when the right to work alone has been lost. */
export type AssertHeld = () => Promise<void>;

/** How long (ms) between two attempts, between two log lines, and until a node that waits gives up. */
const patience = { pause: 200, silence: 30_000, limit: 3_600_000 };

// The key of every release so far, so that their nodes exclude each other.
const key = `hashtext('animal-store migrations')`;

/**
 * Lifts the limits that the role or the database may have set, for this transaction only: a `set` for the session would
 * stay with the next client of a pooler. transaction_timeout came with PostgreSQL 17.
 */
export const withoutLimits = `
  select set_config(name, '0', true) from pg_settings where name in
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * Runs work that only one process at a time may do to this database.
 *
 * The lock is an advisory one of a transaction, held open in a session of its own while the work uses others: poolers
 * keep a transaction on one connection, and it ends with the connection. A session's lock would stay with the pooler.
 *
 * @throws Error when the lock cannot be had, or was lost before the work was done.
 */
export async function exclusivelyIn<T>(
  holder: Client,
  log: Log | undefined,
  work: (assertHeld: AssertHeld) => Promise<T>,
): Promise<T> {
  await acquire(holder, log);
  const result = await work(async () => void (await holder.query('select 1').catch(lost)));
  // The commit of a transaction that has failed is answered by ROLLBACK.
  const { command } = await holder.query('commit').catch(lost);
  return command === 'COMMIT' ? result : lost();
}

/**
 * Polls, and is in no transaction between two attempts: a node that waited in a statement would keep its snapshot, and
 * `create index concurrently` on the node that works waits for all older snapshots, so both would wait for ever. For
 * the same reason the isolation is not left to the role: a repeatable read keeps its snapshot to the end.
 */
async function acquire(holder: Client, log: Log | undefined): Promise<void> {
  const began = performance.now();
  for (let nextNote = 0; !(await attempt(holder)); await sleep(patience.pause * (0.5 + Math.random()))) {
    const waited = Math.round(performance.now() - began);
    if (waited > patience.limit) throw new Error('Another node has been migrating for an hour.');
    if (waited < nextNote) continue;
    log?.warn({ ms: waited }, 'waiting for another node’s migrations');
    nextNote = waited + patience.silence;
  }
}

async function attempt(holder: Client): Promise<boolean> {
  // In one trip: a time-out for idle transactions may be short.
  await holder.query(`begin isolation level read committed; ${withoutLimits}`);
  const { rows } = await holder.query<{ taken: boolean }>(`select pg_try_advisory_xact_lock(${key}) as taken`);
  const taken = rows[0]?.taken === true;
  if (!taken) await holder.query('rollback');
  return taken;
}

function lost(cause?: unknown): never {
  const message = 'The lock for migrations was lost before they were done; another node may have migrated meanwhile.';
  throw new Error(message, { cause });
}
