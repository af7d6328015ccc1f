import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed } from '../tally.ts';
import { verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres, longest } from './deployment.ts';

/**
 * Sends SIGTERM under load on persistent and new connections, then starts the
 * service again.
 */
export const stopped: Drill = {
  name: 'SIGTERM of the service',
  rounds: 10,
  missing: lacksPostgres,
  run: async (resources, _seconds, rounds) => {
    const deployment = await deployOnPostgres(resources, {
      DRAIN_DELAY_MS: '300',
    });
    const client = (at: number) => ({ reconnects: at % 4 >= 2 });
    const load = new Load({
      writers: [deployment.service],
      readers: [deployment.service],
      clients: 32,
      client,
    });
    const recoveries: number[] = [];
    const faults: string[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(300);
      const stoppedAt = performance.now();
      const code = await deployment.service.stop('SIGTERM');
      if (code !== 0) faults.push(`the service exited with ${code}`);
      await deployment.restart();
      await load.recoveryAfter(performance.now());
      recoveries.push(performance.now() - stoppedAt);
    }
    const tally = await load.stop();
    // Connections may be cut when the port is closed. Each client has one
    // active request at most.
    const cut = tally.failed(broken);
    if (cut > rounds * load.clients)
      faults.push(
        `${cut} connections were cut, more than one per client and round`,
      );
    return {
      rounds,
      tally,
      verdict: await verify(tally, deployment.database, [deployment.service]),
      allowed: [broken, closed],
      recovery: `${longest(recoveries)}, drain and start included`,
      faults,
    };
  },
};
