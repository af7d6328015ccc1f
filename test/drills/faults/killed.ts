import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed, refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import {
  type Deployment,
  deployEmbedded,
  deployOnPostgres,
  lacksPostgres,
  longest,
} from './deployment.ts';

/** Kills the service under load, and starts it again. */
const killed = (
  name: string,
  open: (
    ...parameters: Parameters<typeof deployOnPostgres>
  ) => Promise<Deployment>,
): Drill => ({
  name,
  rounds: 30,
  missing: open === deployOnPostgres ? lacksPostgres : async () => undefined,
  run: async (resources, _seconds, rounds) => {
    const deployment = await open(resources);
    const load = new Load({
      writers: [deployment.service],
      readers: [deployment.service],
      clients: 24,
    });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(200 + 400 * Math.random());
      await deployment.service.stop('SIGKILL');
      const killedAt = performance.now();
      await deployment.restart();
      await load.recoveryAfter(performance.now());
      recoveries.push(performance.now() - killedAt);
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, deployment.database, [deployment.service]),
      allowed: [broken, closed, refused, unknown],
      recovery: `${longest(recoveries)}, its start included`,
      // Each kill breaks at least one active request.
      faults:
        tally.failed(broken) < rounds
          ? ['not every kill broke a connection']
          : [],
    };
  },
});

export const killedOnPostgres = killed(
  'kill -9 of the service',
  deployOnPostgres,
);
export const killedEmbedded = killed(
  'kill -9 of the service, embedded store',
  deployEmbedded,
);
