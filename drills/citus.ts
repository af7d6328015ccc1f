import { setTimeout as pause } from 'node:timers/promises';
import { hasCitus, startCitus } from '../test/support/servers/citus.ts';
import { type Drill, Missing } from './drill.ts';
import { Load } from './load.ts';
import { command, lacking, startService } from './service.ts';
import { verify } from './verify.ts';

/**
 * A cluster of three, two processes: animals are created through the first, and read through both.
 *
 * @param options of `distribute`
 * @param readsWorkers whether the second reads at the workers, as each of them may where it has all animals
 */
const citus = (options: string[], readsWorkers: boolean): Drill => ({
  name: `Citus (distribute ${options.join(' ')})`,
  missing: async () => {
    if (!hasCitus) return 'Citus (see CITUS_CLUSTER)';
    if (readsWorkers) return (await lacking('DATABASE_READ_URLS')) ?? lackingCommand();
    return lackingCommand();
  },
  run: async (parts, seconds) => {
    const started = await startCitus().catch((error: Error) => {
      throw new Missing(error.message.replaceAll(/\s+/g, ' '));
    });
    const { url, workerUrls } = parts.add(started, (one) => one.stop());
    const env = { DATABASE_URL: url };
    await command(['migrate'], env);
    const said = await command(['distribute', ...options], env);
    const first = await startService(parts, env);
    const second = await startService(parts, readsWorkers ? { ...env, DATABASE_READ_URLS: workerUrls.join() } : env);
    const load = new Load({ writers: [first], readers: [first, second] });
    await pause(seconds * 1000);
    const tally = await load.stop();
    const note = said.trim().split('\n').at(-1) ?? '';
    return { tally, verdict: await verify(tally, url, [first, second]), allowed: [], note };
  },
});

async function lackingCommand(): Promise<string | undefined> {
  const help = await command(['--help'], {});
  return /^ +distribute\b/m.test(help) ? undefined : 'this build has no command `distribute`';
}

export const citusReference = citus(['--reference'], true);
export const citusShards = citus(['--shards', '8'], false);
