import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import type { Log } from './options.ts';

/** Throws when the right to work alone has been lost. */
export type AssertHeld = () => Promise<void>;

/** How long (ms) between two attempts, between two log lines, and until a node that waits gives up. */
const patience = { pause: 200, silence: 30_000, limit: 3_600_000 };

// The key of every release so far, so that their nodes exclude each other.
const key = `hashtext('animal-store migrations')`;

/**
 * Lifts the limits that the role or the database may have set, for this transaction only: a `set` for the session would
 * stay with whoever a pooler gives the connection to next. transaction_timeout came with PostgreSQL 17.
 */
export const withoutLimits = `
  select set_config(name, '0', true) from pg_settings where name in
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * Runs work that only one process at a time may do to this database.
 *
 * The lock is an advisory one of a transaction, held open on a connection of its own while the work uses others: poolers
 * keep a transaction on one connection, and it ends with the connection. A session's lock would stay with the pooler.
 *
 * @throws Error when the lock cannot be had, or was lost before the work was done.
 */
export async function exclusivelyOn<T>(
  connection: ClientConfig,
  log: Log | undefined,
  work: (assertHeld: AssertHeld) => Promise<T>,
): Promise<T> {
  const holder = new Client(connection);
  // A connection that breaks is noticed by the next statement.
  holder.on('error', () => undefined);
  try {
    await holder.connect();
    await acquire(holder, log);
    const result = await work(() => assertHeld(holder));
    await release(holder);
    return result;
  } finally {
    await holder.end();
  }
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
  if (!(await isHeld(holder))) {
    throw new Error('PostgreSQL does not hold the lock for migrations: a pooler, perhaps (DATABASE_DIRECT_URL).');
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

/** Looks at the server's list of locks, which shows a key of 64 bits as two halves and objsubid 1. */
async function isHeld(holder: Client): Promise<boolean> {
  const { rows } = await holder.query(`
    select from pg_catalog.pg_locks
    where locktype = 'advisory' and granted and pid = pg_backend_pid() and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = ${key}::bigint`);
  return rows.length === 1;
}

async function assertHeld(holder: Client): Promise<void> {
  if (!(await isHeld(holder).catch(lost))) lost();
}

async function release(holder: Client): Promise<void> {
  await assertHeld(holder);
  // The commit of a transaction that has failed is answered by ROLLBACK.
  const { command } = await holder.query('commit').catch(lost);
  if (command !== 'COMMIT') lost();
}

function lost(cause?: unknown): never {
  const message = 'The lock for migrations was lost before they were done; another node may have migrated meanwhile.';
  throw new Error(message, { cause });
}
