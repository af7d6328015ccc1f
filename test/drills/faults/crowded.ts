import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, constants, setPriority } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres } from './deployment.ts';

/** Programs per core that use all the processor time they get. */
const perCore = 2;

/**
 * Other programs keep the machine busy, and the service has a low priority, so
 * it gets a few hundredths of a core. It is slow, but it refuses no request:
 * fewer answers would help nobody.
 */
export const crowded: Drill = {
  name: 'crowded machine (other programs have the processor)',
  missing: async () =>
    process.platform === 'linux' ? lacksPostgres() : 'Linux',
  run: async (resources, seconds) => {
    const { service, database } = await deployOnPostgres(resources, {
      EVENT_LOOP_MAX_DELAY_MS: '100',
    });
    // An answer may be slow.
    const client = () => ({ timeoutMs: 120_000 });
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 6,
      client,
    });
    // Every thread has a priority of its own (sched(7)); a process may lower it
    // without rights.
    for (const thread of readdirSync(`/proc/${service.pid}/task`)) {
      setPriority(Number(thread), constants.priority.PRIORITY_BELOW_NORMAL);
    }
    const hogs = Array.from({ length: perCore * availableParallelism() }, () =>
      resources.add(
        spawn(process.execPath, ['--eval', 'for (;;);'], { stdio: 'ignore' }),
        (one) => one.kill('SIGKILL'),
      ),
    );
    const [began, usedBefore] = [performance.now(), usedBy(service.pid)];
    await pause(seconds * 1000);
    const share =
      (usedBy(service.pid) - usedBefore) / (performance.now() - began);
    const tally = await load.stop();
    for (const hog of hogs) hog.kill('SIGKILL');
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [],
      note: `${Math.round(100 * share)}% of a core beside ${hogs.length} busy programs`,
    };
  },
};

/**
 * Milliseconds of processor time (proc(5), utime and stime in hundredths of a
 * second).
 */
function usedBy(pid: number): number {
  const fields =
    readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
