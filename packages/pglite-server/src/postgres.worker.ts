import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { assertInUse, lockFile, lockFileAfter, type Release } from './lock.ts';

/**
 * The thread that owns the embedded store, or waits to own it. PGlite has no lock, and a second process that opened the
 * same files would lose rows. The process with the lock opens the files; the others connect to its socket, and one of
 * them takes over when it ends.
 */
export interface WorkerData {
  dataDir: string;
  socketPath: string;
  /** The folder to copy for a new store; see `openEngine`. */
  prepared: string | undefined;
  /** Whether to open a retired store. */
  evenRetired: boolean;
  /** Whether to give up when another process owns the store. */
  exclusive: boolean;
  maxSilence: number | undefined;
}

/** The thread's message: whether it owns the store or another process does. */
export type Role = 'owner' | 'standby';

const { dataDir, socketPath, prepared, evenRetired, exclusive, maxSilence } = workerData as WorkerData;
const port = parentPort as NonNullable<typeof parentPort>;

let stop = async () => {};
port.once('message', async () => {
  await stop();
  process.exit(0);
});

const release = await ownership();
if (release) {
  // The previous owner may have retired it while this process waited.
  if (!evenRetired) assertInUse(dataDir);
  // Only the owner needs the engine.
  const [{ openEngine }, { SharedBackend }] = await Promise.all([import('./engine.ts'), import('./backend.ts')]);
  const postgres = await openEngine(join(dataDir, 'postgres'), prepared);
  rmSync(socketPath, { force: true });
  const backend = new SharedBackend(postgres, maxSilence);
  await backend.listen(socketPath);
  chmodSync(socketPath, 0o600);
  stop = async () => {
    backend.close();
    await postgres.close();
    release();
  };
  port.postMessage('owner' satisfies Role);
}

async function ownership(): Promise<Release | undefined> {
  const tryLock = () => lockFile(join(dataDir, 'lock'));
  const held = tryLock();
  if (held) return held;
  port.postMessage('standby' satisfies Role);
  return exclusive ? undefined : lockFileAfter(socketPath, tryLock);
}
