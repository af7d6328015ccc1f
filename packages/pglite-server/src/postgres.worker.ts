import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { assertNotRetired, lockFile, type Release } from './lock.ts';
import type { Role, WorkerData } from './options.ts';

/**
 * The thread that owns the embedded store, or waits to own it. PGlite has no
 * lock, and a second process that opened the same files would lose rows. The
 * process with the lock opens the files; the others connect to its socket, and
 * one of them takes over when it ends.
 */
const { dataDir, socketPath, evenRetired, maxSilence } =
  workerData as WorkerData;
const parent = parentPort as NonNullable<typeof parentPort>;

let stop = async () => {};
parent.once('message', async () => {
  await stop();
  process.exit(0);
});

const release = await ownership();
// The previous owner may have retired it while this process waited.
if (!evenRetired) assertNotRetired(dataDir);
// Only the owner needs the engine.
const [{ openEngine }, { SharedBackend }] = await Promise.all([
  import('./engine.ts'),
  import('./backend.ts'),
]);
const postgres = await openEngine(join(dataDir, 'postgres'));
rmSync(socketPath, { force: true });
const backend = new SharedBackend(postgres, maxSilence);
await backend.listen(socketPath);
chmodSync(socketPath, 0o600);
stop = async () => {
  backend.close();
  await postgres.close();
  release();
};
parent.postMessage('owner' satisfies Role);

/** Waits for the lock; an owner listens on the socket until it ends. */
async function ownership(): Promise<Release> {
  for (;;) {
    const held = lockFile(join(dataDir, 'lock'));
    if (held) return held;
    const owner = connect(socketPath, () =>
      parent.postMessage('guest' satisfies Role),
    ).resume();
    await once(owner, 'close').catch(() => undefined);
    // The owner releases the lock shortly after, and several processes may wait
    // for it.
    await sleep(50 + Math.random() * 100);
  }
}
