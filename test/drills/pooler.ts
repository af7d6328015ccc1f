import { setTimeout as pause } from 'node:timers/promises';
import { hasPgBouncer, startPgBouncer } from '../support/servers/pgbouncer.ts';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createDatabase, missingVariables, startService } from './service.ts';
import { verify } from './verify.ts';

/**
 * Two processes behind PgBouncer in transaction mode, which reassigns
 * connections after each transaction.
 */
export const pooler: Drill = {
  name: 'pooler (PgBouncer, transaction)',
  missing: async () => {
    if (!hasPostgres) return 'PostgreSQL';
    return hasPgBouncer ? missingVariables('DATABASE_DIRECT_URL') : 'PgBouncer';
  },
  run: async (resources, seconds) => {
    const server = resources.add(await TestPostgres.start(), (one) =>
      one.remove(),
    );
    const database = await createDatabase(server);
    const bouncer = resources.add(
      await startPgBouncer(server, { pool_mode: 'transaction' }),
      (one) => one.stop(),
    );
    const env = {
      DATABASE_URL: bouncer.url(database),
      DATABASE_DIRECT_URL: server.url(database),
    };
    // They start concurrently, as nodes of a deployment do, so both migrate.
    const services = await Promise.all([
      startService(resources, env),
      startService(resources, env),
    ]);
    const load = new Load({ writers: services, readers: services });
    await pause(seconds * 1000);
    const pool =
      (await bouncer.show('pools')).find((one) => one.database === database) ??
      {};
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, server.url(database), services),
      allowed: [],
      note: `${Number(pool.cl_active) + Number(pool.cl_waiting)} connections to the pooler, ${
        Number(pool.sv_active) + Number(pool.sv_idle) + Number(pool.sv_used)
      } to PostgreSQL`,
    };
  },
};
