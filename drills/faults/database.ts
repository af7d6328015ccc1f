import { setTimeout as pause } from 'node:timers/promises';
import type { TestPostgres } from '../../test/support/servers/postgres.ts';
import type { Drill, Parts } from '../drill.ts';
import { Load } from '../load.ts';
import type { Service } from '../service.ts';
import { refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { lacksPostgres, longest, openShop, tooLong } from './shop.ts';

/** Statements may take so long (ms), and so a request a second longer. */
const statementTimeout = 2000;
/** When a request counts as hung (ms): its time is up, and the machine busy. */
const patience = 3 * statementTimeout;

/** Breaks the database, and has it back when the promise is fulfilled. */
type Breaking = (server: TestPostgres, round: number) => Promise<void>;

const restart: Breaking = async (server, round) => {
  if (round % 3 === 0) await server.kill();
  else await server.stop(round % 3 === 1 ? 'fast' : 'immediate');
  await pause(300);
  await server.start();
};

/** Shorter than a statement may take, and longer than a request. */
const paused: Breaking = async (server, round) => {
  server.pause();
  await pause(round % 2 === 1 ? 1.5 * statementTimeout + 1500 : statementTimeout / 2);
  server.resume();
};

const underMixedLoad = (name: string, breaking: Breaking): Drill => ({
  name,
  rounds: 10,
  missing: lacksPostgres,
  run: async (parts: Parts, _seconds, rounds) => {
    const { service, server, database } = await openShop(parts, {
      DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}`,
    });
    const load = new Load({ writers: [service], readers: [service], clients: 32, client: () => ({ patience }) });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(500);
      await breaking(server, round);
      recoveries.push(await load.recoveryAfter(performance.now()));
    }
    // What flaps is one loss: it is over when it has been calm for a while.
    while (!saysOfTheDatabase(service).at(-1)?.endsWith('back')) await pause(50);
    const tally = await load.stop();
    const said = saysOfTheDatabase(service);
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused, unknown],
      recovery: longest(recoveries),
      note: `${said.length} lines in the log about it`,
      faults: [
        ...tooLong(recoveries, 2000),
        ...(said.length > 2 * rounds ? [`the log says ${said.length} times that it was lost or back`] : []),
        ...service
          .lines()
          .flatMap(({ err }) => (err ? [`a stack in the log: ${JSON.stringify(err).slice(0, 200)}`] : [])),
      ],
    };
  },
});

function saysOfTheDatabase(service: Service): string[] {
  return service.lines().flatMap(({ msg }) => (/^the database is (?:lost|back)$/.test(`${msg}`) ? [`${msg}`] : []));
}

export const databaseRestarted = underMixedLoad('database stopped and killed', restart);
export const databasePaused = underMixedLoad('database paused (SIGSTOP)', paused);
