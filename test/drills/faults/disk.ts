import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed, refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { type Deployment, deployEmbedded, longest } from './deployment.ts';

/** Fills the disk of the embedded store under load, then frees it. */
export const diskFull: Drill = {
  name: 'disk full, embedded store',
  rounds: 5,
  missing: async () =>
    process.getuid?.() === 0 && process.platform === 'linux'
      ? undefined
      : 'root, to mount a disk',
  run: async (resources, _seconds, rounds) => {
    const deployment = await deployEmbedded(resources, {}, 200);
    const load = new Load({
      writers: [deployment.service],
      readers: [deployment.service],
    });
    const recoveries: number[] = [];
    let exits = 0;
    for (let round = 1; round <= rounds; round += 1) {
      await pause(500);
      const filler = join(deployment.folder, 'filler');
      fill(filler);
      // The store still writes rows that fit into allocated pages, so the disk
      // is filled again.
      await pause(1500);
      fill(filler);
      await pause(500);
      rmSync(filler);
      const freedAt = performance.now();
      // Without space for its write-ahead log the store ends, and the service
      // with it. A supervisor would restart it.
      if (!(await isAlive(deployment))) {
        exits += 1;
        await deployment.restart();
      }
      await load.recoveryAfter(freedAt);
      recoveries.push(performance.now() - freedAt);
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, deployment.database, [deployment.service]),
      allowed: [refused, unknown, broken, closed],
      recovery: longest(recoveries),
      note: `the service ended and was restarted ${exits} times`,
    };
  },
};

/** Writes until the disk is full. */
function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(65_536));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

async function isAlive({ service }: Deployment): Promise<boolean> {
  const client = new Client(service.origin, {
    reconnects: true,
    timeoutMs: 15_000,
  });
  const reply = await client.get('/livez');
  client.close();
  return reply.kind === 'answer';
}
