import { setTimeout as pause } from 'node:timers/promises';
import {
  distribute,
  hasCitus,
  type Layout,
  startCitus,
} from '../support/servers/citus.ts';
import { type Drill, Missing } from './drill.ts';
import { Load } from './load.ts';
import { missingVariables, runCommand, startService } from './service.ts';
import { verify } from './verify.ts';

/**
 * A coordinator, two workers and two service processes. Pets are created
 * through the first process and read through both.
 *
 * @param layout of the table `pet`
 * @param readsWorkers the second process reads from the workers; only with
 *   reference tables, which every worker holds whole
 */
const citus = (layout: Layout, readsWorkers: boolean): Drill => ({
  name: `Citus (${layout === 'reference' ? 'reference tables' : `${layout} shards`})`,
  missing: async () => {
    if (!hasCitus) return 'Citus (see test/support/servers/citus/README.md)';
    return readsWorkers ? missingVariables('DATABASE_READ_URLS') : undefined;
  },
  run: async (resources, seconds) => {
    const started = await startCitus().catch((error: Error) => {
      throw new Missing(error.message.replaceAll(/\s+/g, ' '));
    });
    const { url, workerUrls } = resources.add(started, (one) => one.stop());
    const env = { DATABASE_URL: url };
    await runCommand(['migrate'], env);
    await distribute(url, layout);
    const first = await startService(resources, env);
    const second = await startService(
      resources,
      readsWorkers ? { ...env, DATABASE_READ_URLS: workerUrls.join() } : env,
    );
    const load = new Load({ writers: [first], readers: [first, second] });
    await pause(seconds * 1000);
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, url, [first, second]),
      allowed: [],
      note: '',
    };
  },
});

export const citusReference = citus('reference', true);
export const citusShards = citus(8, false);
