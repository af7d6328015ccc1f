import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { hasHaproxy, startFailover } from '../support/servers/haproxy.ts';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createDatabase, startService } from './service.ts';
import { refused, unknown } from './tally.ts';
import { verify } from './verify.ts';

/**
 * Kills the primary under load and promotes its synchronous standby; the proxy
 * switches to it.
 */
export const failover: Drill = {
  name: 'failover (HAProxy, synchronous standby)',
  missing: async () =>
    hasPostgres ? (hasHaproxy ? undefined : 'HAProxy') : 'PostgreSQL',
  run: async (resources, seconds) => {
    const primary = resources.add(
      await TestPostgres.start({ synchronous_standby_names: 'standby' }),
      (one) => one.remove(),
    );
    const standby = resources.add(await primary.replica('standby'), (one) =>
      one.remove(),
    );
    const database = await createDatabase(primary);
    const proxy = resources.add(
      await startFailover([primary, standby]),
      (one) => one.stop(),
    );
    const services = [];
    for (let node = 0; node < 2; node++)
      services.push(
        await startService(resources, { DATABASE_URL: proxy.url(database) }),
      );
    const load = new Load({ writers: services, readers: services });
    await pause(seconds * 400);
    await primary.kill();
    const killedAt = performance.now();
    await standby.promote();
    const promotedAt = performance.now();
    await untilWritable(proxy.url(database), killedAt + 30_000);
    const switchedAt = performance.now();
    while (
      load.tally.firstAfter(killedAt) === undefined &&
      performance.now() - killedAt < 30_000
    )
      await pause(20);
    await pause(seconds * 600);
    const tally = await load.stop();
    const servedAt = tally.firstAfter(killedAt);
    const duration = (from: number, to: number) =>
      `${Math.max(0, Math.round(to - from))} ms`;
    return {
      tally,
      verdict: await verify(tally, standby.url(database), services),
      allowed: [refused, unknown],
      recovery: servedAt === undefined ? 'never' : duration(killedAt, servedAt),
      note:
        servedAt === undefined
          ? 'no creation was acknowledged after the kill'
          : `promotion ${duration(killedAt, promotedAt)}, then the proxy ${duration(promotedAt, switchedAt)}, then the service ${duration(switchedAt, servedAt)}`,
      faults: servedAt === undefined ? ['the service did not recover'] : [],
    };
  },
};

/** Queries through the proxy until a primary answers, or until the deadline. */
async function untilWritable(url: string, deadline: number): Promise<void> {
  while (performance.now() < deadline && !(await isWritable(url)))
    await pause(10);
}

async function isWritable(url: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 500,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(
      'select pg_is_in_recovery() as is_standby',
    );
    return rows[0].is_standby === false;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
