import { setTimeout as pause } from 'node:timers/promises';
import { distribute, hasCitus, type Layout, startCitus } from '../test/support/servers/citus.ts';
import { type Drill, Missing } from './drill.ts';
import { Load } from './load.ts';
import { command, lacking, startService } from './service.ts';
import { verify } from './verify.ts';

/**
 * A cluster of three, two processes: animals are created through the first, and read through both.
 *
 * @param layout of the table `pet`
 * @param readsWorkers whether the second reads at the workers, as each of them may where it has all animals
 */
const citus = (layout: Layout, readsWorkers: boolean): Drill => ({
  name: `Citus (${layout === 'reference' ? 'reference tables' : `${layout} shards`})`,
  missing: async () => {
    if (!hasCitus) return 'Citus (see CITUS_CLUSTER)';
    return readsWorkers ? lacking('DATABASE_READ_URLS') : undefined;
  },
  run: async (parts, seconds) => {
    const started = await startCitus().catch((error: Error) => {
      throw new Missing(error.message.replaceAll(/\s+/g, ' '));
    });
    const { url, workerUrls } = parts.add(started, (one) => one.stop());
    const env = { DATABASE_URL: url };
    await command(['migrate'], env);
    await distribute(url, layout);
    const first = await startService(parts, env);
    const second = await startService(parts, readsWorkers ? { ...env, DATABASE_READ_URLS: workerUrls.join() } : env);
    const load = new Load({ writers: [first], readers: [first, second] });
    await pause(seconds * 1000);
    const tally = await load.stop();
    return { tally, verdict: await verify(tally, url, [first, second]), allowed: [], note: '' };
  },
});

export const citusReference = citus('reference', true);
export const citusShards = citus(8, false);
