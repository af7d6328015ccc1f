import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../support/process.ts';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import { childrenOf } from '../support/servers/program.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { sharesOf } from './percentages.ts';
import { createDatabase, missingVariables, startService } from './service.ts';
import { broken, unknown } from './tally.ts';
import { verify } from './verify.ts';

const count = 2;

/**
 * Kills one of several workers on one port under load; the parent replaces it.
 */
export const workers: Drill = {
  name: `workers (${count}, one killed)`,
  missing: async () =>
    hasPostgres ? missingVariables('WORKERS') : 'PostgreSQL',
  run: async (resources, seconds) => {
    const server = resources.add(await TestPostgres.start(), (one) =>
      one.remove(),
    );
    const url = server.url(await createDatabase(server));
    const service = await startService(resources, {
      DATABASE_URL: url,
      WORKERS: `${count}`,
    });
    const load = new Load({ writers: [service], readers: [service] });
    await pause(seconds * 400);
    const served = () =>
      service
        .lines()
        .flatMap(({ worker, req }) =>
          req === undefined ? [] : [`worker ${worker}`],
        );
    await eventually(async () => new Set(served()).size === count);
    const shares = sharesOf(served());
    const [victim, ...others] = childrenOf(service.pid);
    if (victim === undefined || others.length !== count - 1)
      throw new Error(`${count} workers were expected.`);
    process.kill(victim, 'SIGKILL');
    const killedAt = performance.now();
    const isReplaced = () =>
      childrenOf(service.pid).filter((pid) => pid !== victim).length === count;
    while (!isReplaced() && performance.now() - killedAt < 15_000)
      await pause(10);
    const replacedAfter = performance.now() - killedAt;
    await pause(seconds * 600);
    const tally = await load.stop();
    const faults = [];
    if (!isReplaced()) faults.push('the killed worker was not replaced');
    // Only its active requests fail. Each client has one active request at
    // most.
    const lostRequests = tally.failed(broken) + tally.failed(unknown);
    if (lostRequests > load.clients)
      faults.push(
        `a killed worker lost ${lostRequests} requests, more than it can have had active`,
      );
    return {
      tally,
      verdict: await verify(tally, url, [service]),
      allowed: [broken, unknown],
      recovery: `${Math.round(replacedAfter)} ms to the new process`,
      note: `${shares.map(([worker, share]) => `${worker} ${share}%`).join(', ')}; longest pause of creations ${Math.round(tally.longestPause())} ms`,
      faults,
    };
  },
};
