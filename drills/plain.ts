import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, startService } from './service.ts';
import { verify } from './verify.ts';

/** One process on one PostgreSQL, and nothing breaks: what the others are held against. */
export const plain: Drill = {
  name: 'plain',
  missing: async () => (hasPostgres ? undefined : 'PostgreSQL'),
  run: async (parts, seconds) => {
    const server = parts.add(await TestPostgres.start(), (one) => one.remove());
    const url = server.url(await createShop(server));
    const service = await startService(parts, { DATABASE_URL: url });
    const load = new Load({ writers: [service], readers: [service] });
    await pause(seconds * 1000);
    const tally = await load.stop();
    return { tally, verdict: await verify(tally, url, [service]), allowed: [] };
  },
};
