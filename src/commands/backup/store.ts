import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type ClientBase } from 'pg';
import { type EmbeddedOptions, type EmbeddedPostgres, openEmbeddedPostgres } from '../../storage/database/embedded.ts';
import type { DatabaseOptions } from '../../storage/database/options.ts';
import { sessionsFor } from '../../storage/database/sessions.ts';
import { plainText } from './rows.ts';

/** The embedded store in a folder, and one session with it. */
export interface OpenStore {
  session: Client;
  embedded: EmbeddedPostgres;
}

/**
 * Opens the embedded store, or connects to the service that has it open, and does nothing to it: it may be an earlier
 * release's.
 */
export async function withStore<T>(
  options: DatabaseOptions,
  work: (store: OpenStore) => Promise<T>,
  how: EmbeddedOptions = {},
): Promise<T> {
  const onLost = (error: Error) => session?.emit('error', error);
  const embedded = await openEmbeddedPostgres(options.dataDir, { onLost, prepared: options.prepared, ...how });
  let session: Client | undefined;
  try {
    // What is done here takes as long as there are rows.
    const { config } = await sessionsFor({ ...options, statementTimeout: 0 }, embedded);
    session = new Client(config);
    // Whoever waits for an answer gets the error.
    session.on('error', () => undefined);
    await session.connect();
    return await work({ session, embedded });
  } finally {
    await session?.end();
    await embedded.close();
  }
}

/** @throws Error when there is no store: opening it would make one */
export function assertStoreIn(dataDir: string): void {
  if (!existsSync(join(dataDir, 'postgres', 'PG_VERSION')))
    throw new Error(`There is no store in ${dataDir} (DATA_DIR).`);
}

export async function begin(session: ClientBase, mode: 'read only' | 'read write'): Promise<void> {
  const isolation = mode === 'read only' ? 'repeatable read' : 'read committed';
  await session.query(`begin isolation level ${isolation} ${mode}; ${plainText}`);
}

/**
 * Runs work in one transaction, which is undone when the work fails. One that only reads sees the database at one
 * moment; one that writes sees what is there when it has its locks. On the embedded store it has the only backend:
 * whoever comes meanwhile waits.
 */
export async function inTransaction<T>(
  session: ClientBase,
  mode: 'read only' | 'read write',
  work: () => Promise<T>,
): Promise<T> {
  await begin(session, mode);
  try {
    const result = await work();
    await session.query('commit');
    return result;
  } catch (error) {
    // A session that is broken has undone it.
    await session.query('rollback').catch(() => undefined);
    throw error;
  }
}
