import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { lacksPostgres, longest, openShop, tooLong } from './shop.ts';

const statementTimeout = 2000;

/** Somebody holds the table: again and again for a moment, then for longer than anybody waits. */
export const locked: Drill = {
  name: 'slow and locked table',
  rounds: 10,
  missing: lacksPostgres,
  run: async (parts, _seconds, rounds) => {
    const { service, database } = await openShop(parts, { DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}` });
    const holder = parts.add(new pg.Client(database), (one) => one.end());
    await holder.connect();
    const hold = async (milliseconds: number) => {
      await holder.query('begin; lock table pet in access exclusive mode');
      await pause(milliseconds);
      await holder.query('rollback');
    };
    const client = () => ({ patience: 3 * statementTimeout });
    const load = new Load({ writers: [service], readers: [service], clients: 64, client });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (let moment = 1; moment <= 5; moment += 1) await hold(100 * Math.random());
      await hold(2 * statementTimeout);
      recoveries.push(await load.recoveryAfter(performance.now()));
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused, unknown],
      recovery: longest(recoveries),
      faults: tooLong(recoveries, 2000),
    };
  },
};
