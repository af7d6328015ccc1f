import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { lockFile } from './lock.ts';
import { assertInUse } from './retired.ts';

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
  /** Whether a store is opened although its data have gone elsewhere. */
  evenRetired: boolean;
}

const { dataDir, socketPath, prepared, evenRetired } = workerData as WorkerData;
const port = parentPort as NonNullable<typeof parentPort>;

let closing = false;
let stop = async () => {};
port.once('message', async () => {
  closing = true;
  await stop();
  process.exit(0);
});

const release = await ownership();
if (release) {
  // The owner before may have moved it while this process waited.
  if (!evenRetired) assertInUse(dataDir);
  // Only the owner needs the engine.
  const [{ openEngine }, { SharedBackend }] = await Promise.all([import('./engine.ts'), import('./backend.ts')]);
  const postgres = await openEngine(join(dataDir, 'postgres'), prepared);
  rmSync(socketPath, { force: true });
  const backend = new SharedBackend(postgres);
  await backend.listen(socketPath);
  chmodSync(socketPath, 0o600);
  stop = async () => {
    backend.close();
    await postgres.close();
    release();
  };
  port.postMessage('owner');
}

async function ownership(): Promise<(() => void) | undefined> {
  for (let announced = false; !closing; announced = true) {
    const held = lockFile(join(dataDir, 'lock'));
    if (held) return held;
    if (!announced) port.postMessage('standby');
    await sleep(100);
  }
}
