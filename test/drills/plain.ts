import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createDatabase, startService } from './service.ts';
import { verify } from './verify.ts';

/**
 * One process on one PostgreSQL, without faults: the baseline for the other
 * drills.
 */
export const plain: Drill = {
  name: 'plain',
  missing: async () => (hasPostgres ? undefined : 'PostgreSQL'),
  run: async (resources, seconds) => {
    const server = resources.add(await TestPostgres.start(), (one) =>
      one.remove(),
    );
    const url = server.url(await createDatabase(server));
    const service = await startService(resources, { DATABASE_URL: url });
    const load = new Load({ writers: [service], readers: [service] });
    await pause(seconds * 1000);
    const tally = await load.stop();
    return { tally, verdict: await verify(tally, url, [service]), allowed: [] };
  },
};
