import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { verify } from '../verify.ts';
import {
  deployOnPostgres,
  lacksPostgres,
  longest,
  tooLong,
} from './deployment.ts';
import { probe } from './probed.ts';

const hour = 3_600_000;

/**
 * Sets the service's clock forward and back under mixed load, with quotas on,
 * which count per minute.
 */
export const clock: Drill = {
  name: 'clock jumps',
  rounds: 10,
  missing: lacksPostgres,
  run: async (resources, _seconds, rounds) => {
    const probed = await probe(resources);
    const { service, database } = await deployOnPostgres(resources, {
      ...probed.env,
      QUOTA_PER_MINUTE: '100000000',
    });
    const load = new Load({ writers: [service], readers: [service] });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (const jump of [hour, -hour, 365 * 24 * hour, 0]) {
        await pause(100);
        await probed.setClock(jump);
        recoveries.push(await load.recoveryAfter(performance.now()));
      }
    }
    const tally = await load.stop();
    const verdict = await verify(tally, database, [service]);
    // The service writes log lines in batches, so the last lines may be
    // delayed.
    await pause(500);
    const times = service.lines().map(({ time }) => Number(time));
    const range = Math.max(...times) - Math.min(...times);
    return {
      rounds,
      tally,
      verdict,
      allowed: [],
      recovery: longest(recoveries),
      slow: tooLong(recoveries, 2000),
      faults: range < 24 * hour ? ['the clock was not set'] : [],
    };
  },
};
