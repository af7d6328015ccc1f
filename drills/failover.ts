import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { hasHaproxy, startFailover } from '../test/support/servers/haproxy.ts';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, startService } from './service.ts';
import { refused, unknown } from './tally.ts';
import { verify } from './verify.ts';

/** The primary dies under load; its synchronous standby is promoted, and the proxy follows. */
export const failover: Drill = {
  name: 'failover (HAProxy, synchronous standby)',
  missing: async () => (hasPostgres ? (hasHaproxy ? undefined : 'HAProxy') : 'PostgreSQL'),
  run: async (parts, seconds) => {
    const primary = parts.add(await TestPostgres.start({ synchronous_standby_names: 'standby' }), (one) =>
      one.remove(),
    );
    const standby = parts.add(await primary.replica('standby'), (one) => one.remove());
    const shop = await createShop(primary);
    const proxy = parts.add(await startFailover([primary, standby]), (one) => one.stop());
    const services = [];
    for (let node = 0; node < 2; node++) services.push(await startService(parts, { DATABASE_URL: proxy.url(shop) }));
    const load = new Load({ writers: services, readers: services });
    await pause(seconds * 400);
    await primary.kill();
    const killedAt = performance.now();
    await standby.promote();
    const promotedAt = performance.now();
    await untilWritable(proxy.url(shop), killedAt + 30_000);
    const switchedAt = performance.now();
    while (load.tally.firstAfter(killedAt) === undefined && performance.now() - killedAt < 30_000) await pause(20);
    await pause(seconds * 600);
    const tally = await load.stop();
    const servedAt = tally.firstAfter(killedAt);
    const since = (moment: number, before: number) => `${Math.max(0, Math.round(moment - before))} ms`;
    return {
      tally,
      verdict: await verify(tally, standby.url(shop), services),
      allowed: [refused, unknown],
      recovery: servedAt === undefined ? 'never' : since(servedAt, killedAt),
      note:
        servedAt === undefined
          ? 'no creation was acknowledged after the kill'
          : `promotion ${since(promotedAt, killedAt)}, then the proxy ${since(switchedAt, promotedAt)}, then the service ${since(servedAt, switchedAt)}`,
      faults: servedAt === undefined ? ['the service did not recover'] : [],
    };
  },
};

/** Asks through the proxy until a primary answers. */
async function untilWritable(url: string, deadline: number): Promise<void> {
  while (performance.now() < deadline && !(await isWritable(url))) await pause(10);
}

async function isWritable(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 500 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('select pg_is_in_recovery() as is_standby');
    return rows[0].is_standby === false;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
