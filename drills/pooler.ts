import { setTimeout as pause } from 'node:timers/promises';
import { hasPgBouncer, startPgBouncer } from '../test/support/servers/pgbouncer.ts';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, lacking, startService } from './service.ts';
import { verify } from './verify.ts';

/** Two processes through a pooler that gives a connection to another client after each transaction. */
export const pooler: Drill = {
  name: 'pooler (PgBouncer, transaction)',
  missing: async () => {
    if (!hasPostgres) return 'PostgreSQL';
    return hasPgBouncer ? lacking('DATABASE_DIRECT_URL') : 'PgBouncer';
  },
  run: async (parts, seconds) => {
    const server = parts.add(await TestPostgres.start(), (one) => one.remove());
    const shop = await createShop(server);
    const bouncer = parts.add(await startPgBouncer(server, { pool_mode: 'transaction' }), (one) => one.stop());
    const env = { DATABASE_URL: bouncer.url(shop), DATABASE_DIRECT_URL: server.url(shop) };
    // At once, as nodes of a fleet do: both migrate.
    const services = await Promise.all([startService(parts, env), startService(parts, env)]);
    const load = new Load({ writers: services, readers: services });
    await pause(seconds * 1000);
    const pool = (await bouncer.show('pools')).find(({ database }) => database === shop) ?? {};
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, server.url(shop), services),
      allowed: [],
      note: `${Number(pool.cl_active) + Number(pool.cl_waiting)} connections to the pooler, ${
        Number(pool.sv_active) + Number(pool.sv_idle) + Number(pool.sv_used)
      } to PostgreSQL`,
    };
  },
};
