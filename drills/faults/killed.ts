import { setTimeout as pause } from 'node:timers/promises';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { broken, closed, refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { lacksPostgres, longest, openEmbeddedShop, openShop, type Shop } from './shop.ts';

/** The service is killed under creations, and started again. */
const killed = (name: string, open: (...parameters: Parameters<typeof openShop>) => Promise<Shop>): Drill => ({
  name,
  rounds: 30,
  missing: open === openShop ? lacksPostgres : async () => undefined,
  run: async (parts, _seconds, rounds) => {
    const shop = await open(parts);
    const load = new Load({ writers: [shop.service], readers: [shop.service], clients: 24 });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(200 + 400 * Math.random());
      await shop.service.stop('SIGKILL');
      const killedAt = performance.now();
      await shop.restart();
      await load.recoveryAfter(performance.now());
      recoveries.push(performance.now() - killedAt);
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, shop.database, [shop.service]),
      allowed: [broken, closed, refused, unknown],
      recovery: `${longest(recoveries)}, its start included`,
      // Each kill has some requests under way.
      faults: tally.failed(broken) < rounds ? ['it was not killed under load each time'] : [],
    };
  },
});

export const killedOnPostgres = killed('kill -9 of the service', openShop);
export const killedEmbedded = killed('kill -9 of the service, embedded store', openEmbeddedShop);
