import {
  type MeasuredServer,
  startMeasured,
} from '../../../support/metrics.ts';
import type { Env } from '../../../support/process.ts';
import { allUp } from '../../../support/process.ts';
import { linesOf, untilLogged } from '../../../support/process-log.ts';

/** A running `main.js` with workers. */
export interface WorkersProcess extends MeasuredServer {
  /** The process ids of the workers that have become ready, oldest first. */
  pids(): number[];
}

/** Starts workers, and waits until all are up. */
export async function startWorkers(
  env: Env,
  count = 3,
  stdout?: number,
): Promise<WorkersProcess> {
  const options = stdout === undefined ? {} : { stdout };
  const server = await startMeasured({ WORKERS: `${count}`, ...env }, options);
  await allUp(server);
  const pids = () =>
    linesOf(server.output.stdout, 'worker ready').map(
      ({ workerPid }) => workerPid as number,
    );
  if (stdout === undefined) await untilLogged(server, 'worker ready', count);
  return { ...server, pids };
}
