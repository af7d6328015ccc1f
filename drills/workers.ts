import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import { childrenOf } from '../test/support/servers/program.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, lacking, startService } from './service.ts';
import { sharesOf } from './shares.ts';
import { broken, unknown } from './tally.ts';
import { verify } from './verify.ts';

const count = 2;

/** Several processes on one port; one of them is killed under load, and comes back. */
export const workers: Drill = {
  name: `workers (${count}, one killed)`,
  missing: async () => (hasPostgres ? lacking('WORKERS') : 'PostgreSQL'),
  run: async (parts, seconds) => {
    const server = parts.add(await TestPostgres.start(), (one) => one.remove());
    const url = server.url(await createShop(server));
    const service = await startService(parts, { DATABASE_URL: url, WORKERS: `${count}` });
    const load = new Load({ writers: [service], readers: [service] });
    await pause(seconds * 400);
    const served = service.lines().flatMap(({ worker, req }) => (req === undefined ? [] : [`worker ${worker}`]));
    const shares = sharesOf(served);
    const [victim, ...others] = childrenOf(service.pid);
    if (victim === undefined || others.length !== count - 1) throw new Error(`There are not ${count} workers.`);
    process.kill(victim, 'SIGKILL');
    const killedAt = performance.now();
    const isBack = () => childrenOf(service.pid).filter((pid) => pid !== victim).length === count;
    while (!isBack() && performance.now() - killedAt < 15_000) await pause(10);
    const backAfter = performance.now() - killedAt;
    await pause(seconds * 600);
    const tally = await load.stop();
    const faults = [];
    if (shares.length < count) faults.push(`only ${shares.length} of ${count} workers served`);
    if (!isBack()) faults.push('the killed worker was not replaced');
    // What it had in hand: each client waits for one answer at most.
    const cost = tally.failed(broken) + tally.failed(unknown);
    if (cost > load.clients) faults.push(`a killed worker cost ${cost} requests, more than it can have had in hand`);
    return {
      tally,
      verdict: await verify(tally, url, [service]),
      allowed: [broken, unknown],
      recovery: `${Math.round(backAfter)} ms to the new process`,
      note: `${shares.map(([worker, share]) => `${worker} ${share}%`).join(', ')}; longest pause of creations ${Math.round(tally.longestPause())} ms`,
      faults,
    };
  },
};
