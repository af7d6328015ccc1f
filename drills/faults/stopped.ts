import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed } from '../tally.ts';
import { verify } from '../verify.ts';
import { lacksPostgres, longest, openShop } from './shop.ts';

/** SIGTERM under load, on connections that are kept alive and on new ones; then it is started again. */
export const stopped: Drill = {
  name: 'SIGTERM of the service',
  rounds: 10,
  missing: lacksPostgres,
  run: async (parts, _seconds, rounds) => {
    const shop = await openShop(parts, { DRAIN_DELAY_MS: '300' });
    const client = (at: number) => ({ isFresh: at % 4 >= 2 });
    const load = new Load({ writers: [shop.service], readers: [shop.service], clients: 32, client });
    const recoveries: number[] = [];
    const faults: string[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(300);
      const stoppedAt = performance.now();
      const code = await shop.service.stop('SIGTERM');
      if (code !== 0) faults.push(`it ended with ${code}`);
      await shop.restart();
      await load.recoveryAfter(performance.now());
      recoveries.push(performance.now() - stoppedAt);
    }
    const tally = await load.stop();
    // Those on their way when the port is closed: each client has one at most.
    const cut = tally.failed(broken);
    if (cut > rounds * load.clients) faults.push(`${cut} connections were cut, more than there were`);
    return {
      rounds,
      tally,
      verdict: await verify(tally, shop.database, [shop.service]),
      allowed: [broken, closed],
      recovery: `${longest(recoveries)}, drain and start included`,
      faults,
    };
  },
};
