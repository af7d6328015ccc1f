import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { assertInUse, lockFile, lockFileAfter, type Release } from './lock.ts';

/**
 * The thread that owns the embedded store, or waits to. PGlite has no lock of its own, and a second process that opened
 * the same files would lose rows. The process that holds the lock opens the files; every other one connects to its
 * socket and takes over when it ends.
 */
export interface WorkerData {
  dataDir: string;
  socketPath: string;
  /** What a new store begins with; see `openEngine`. */
  prepared: string | undefined;
  /** Whether a store is opened although its data have moved elsewhere. */
  evenRetired: boolean;
  /** Whether the thread gives up when another process has the store. */
  exclusive: boolean;
  maxSilence: number | undefined;
}

/** What the thread tells the process: that it has opened the store, or that another process has. */
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
