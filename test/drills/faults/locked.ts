import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import {
  deployOnPostgres,
  lacksPostgres,
  longest,
  tooLong,
} from './deployment.ts';

const statementTimeout = 2000;

/**
 * Locks the table for short moments, then for longer than requests may wait.
 */
export const locked: Drill = {
  name: 'slow and locked table',
  rounds: 10,
  missing: lacksPostgres,
  run: async (resources, _seconds, rounds) => {
    const { service, database } = await deployOnPostgres(resources, {
      DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}`,
    });
    const locker = resources.add(new pg.Client(database), (one) => one.end());
    await locker.connect();
    const lockFor = async (milliseconds: number) => {
      await locker.query('begin; lock table pet in access exclusive mode');
      await pause(milliseconds);
      await locker.query('rollback');
    };
    const client = () => ({ timeoutMs: 3 * statementTimeout });
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 64,
      client,
    });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (let moment = 1; moment <= 5; moment += 1)
        await lockFor(100 * Math.random());
      await lockFor(2 * statementTimeout);
      recoveries.push(await load.recoveryAfter(performance.now()));
    }
    const tally = await load.stop();
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused, unknown],
      recovery: longest(recoveries),
      slow: tooLong(recoveries, 2000),
    };
  },
};
