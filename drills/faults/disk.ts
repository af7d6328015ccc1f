import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed, refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { longest, openEmbeddedShop, type Shop } from './shop.ts';

/** The disk of the embedded store is filled under load; then there is room again. */
export const diskFull: Drill = {
  name: 'disk full, embedded store',
  rounds: 5,
  missing: async () =>
    process.getuid?.() === 0 && process.platform === 'linux' ? undefined : 'root, who may mount a disk',
  run: async (parts, _seconds, rounds) => {
    const shop = await openEmbeddedShop(parts, {}, 200);
    const load = new Load({ writers: [shop.service], readers: [shop.service] });
    const recoveries: number[] = [];
    let ends = 0;
    for (let round = 1; round <= rounds; round += 1) {
      await pause(500);
      const filler = join(shop.folder, 'filler');
      fill(filler);
      // What fits into pages that are there already is still stored.
      await pause(1500);
      fill(filler);
      await pause(500);
      rmSync(filler);
      const backAt = performance.now();
      // Where PostgreSQL's own log found no room, the store has ended, and so has the service: a supervisor starts it.
      if (!(await isThere(shop))) {
        ends += 1;
        await shop.restart();
      }
      await load.recoveryAfter(backAt);
      recoveries.push(performance.now() - backAt);
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, shop.database, [shop.service]),
      allowed: [refused, unknown, broken, closed],
      recovery: longest(recoveries),
      note: `the service ended ${ends} times, and was started again`,
    };
  },
};

/** Takes all the room that there is. */
function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(65_536));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

async function isThere({ service }: Shop): Promise<boolean> {
  const client = new Client(service.origin, { isFresh: true, patience: 15_000 });
  const reply = await client.get('/livez');
  client.close();
  return reply.kind === 'answer';
}
