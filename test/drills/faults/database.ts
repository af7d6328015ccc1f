import { setTimeout as pause } from 'node:timers/promises';
import type { TestPostgres } from '../../support/servers/postgres.ts';
import type { Drill, Resources } from '../drill.ts';
import { Load } from '../load.ts';
import type { Service } from '../service.ts';
import { refused, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import {
  deployOnPostgres,
  lacksPostgres,
  longest,
  tooLong,
} from './deployment.ts';

/** DATABASE_STATEMENT_TIMEOUT_MS. A request may take a second longer. */
const statementTimeout = 2000;
/**
 * A request without a response after this time (ms) counts as hung. It exceeds
 * the service's limit, for a busy machine.
 */
const timeoutMs = 3 * statementTimeout;

/**
 * Injects a fault. The database is available again when the promise is
 * fulfilled.
 */
type FaultInjection = (server: TestPostgres, round: number) => Promise<void>;

const restart: FaultInjection = async (server, round) => {
  if (round % 3 === 0) await server.kill();
  else await server.stop(round % 3 === 1 ? 'fast' : 'immediate');
  await pause(300);
  await server.start();
};

/**
 * In turn longer than a request may take, and shorter than a statement may
 * take.
 */
const paused: FaultInjection = async (server, round) => {
  server.pause();
  await pause(
    round % 2 === 1 ? 1.5 * statementTimeout + 1500 : statementTimeout / 2,
  );
  server.resume();
};

const underMixedLoad = (name: string, injectFault: FaultInjection): Drill => ({
  name,
  rounds: 10,
  missing: lacksPostgres,
  run: async (resources: Resources, _seconds, rounds) => {
    const { service, server, database } = await deployOnPostgres(resources, {
      DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}`,
    });
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 32,
      client: () => ({ timeoutMs }),
    });
    const recoveries: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await pause(500);
      await injectFault(server, round);
      recoveries.push(await load.recoveryAfter(performance.now()));
    }
    // The service logs a flapping connection as one loss, and its end only when
    // the connection has been stable for a while.
    while (!availabilityMessages(service).at(-1)?.endsWith('back'))
      await pause(50);
    const tally = await load.stop();
    const messages = availabilityMessages(service);
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused, unknown],
      recovery: longest(recoveries),
      note: `${messages.length} log lines about availability`,
      slow: tooLong(recoveries, 2000),
      faults: [
        ...(messages.length > 2 * rounds
          ? [`the database was logged as lost or back ${messages.length} times`]
          : []),
        ...service
          .lines()
          .flatMap(({ err }) =>
            err
              ? [`the log has a stack: ${JSON.stringify(err).slice(0, 200)}`]
              : [],
          ),
      ],
    };
  },
});

function availabilityMessages(service: Service): string[] {
  return service
    .lines()
    .flatMap(({ msg }) =>
      /^the database is (?:lost|back)$/.test(`${msg}`) ? [`${msg}`] : [],
    );
}

export const databaseRestarted = underMixedLoad(
  'database stopped and killed',
  restart,
);
export const databasePaused = underMixedLoad(
  'database paused (SIGSTOP)',
  paused,
);
