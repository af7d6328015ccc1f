import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { ClusterWorker } from '@animal-store/cluster/worker';
import { Unavailable } from '../../errors.ts';
import type { ServiceProcess, Serving } from '../../process/service-types.ts';
import type { LogSettings } from '../../runtime/log/log.ts';
import { inParent } from './parent-limiters.ts';

/** How this process serves: as a worker, or through workers. */
export async function servingOf(
  service: ServiceProcess,
  processes: number | 'auto',
): Promise<Serving | undefined> {
  const worker = ClusterWorker.ofThisProcess<LogSettings>();
  if (worker) return asWorker(service, worker);
  const count = processes === 'auto' ? availableParallelism() : processes;
  if (count === 1) return undefined;
  if (cluster.isWorker) throw new Error(noNestedWorkers);
  const { asParent } = await import('./parent.ts');
  return asParent(service, count);
}

const noNestedWorkers =
  'WORKERS is more than 1 in a process that is a cluster worker itself (PM2 in cluster mode): set WORKERS=1, or start one process (PM2 in fork mode).';

function asWorker(
  { log, stop }: ServiceProcess,
  worker: ClusterWorker<LogSettings>,
): Serving {
  log.bind({ worker: worker.number });
  worker.onLost(() => stop('the parent has gone'));
  worker.onState(({ shared }) => {
    log.settings = shared;
  });
  return {
    limiters: inParent,
    hasParent: true,
    readiness: () => startedWorkers(worker),
    onListen(address, check) {
      worker.onAsk(check);
      worker.ready(address);
    },
  };
}

/** @throws Unavailable before all workers have been up */
function startedWorkers({ state }: ClusterWorker<LogSettings>): object {
  // Not ready yet: clients that connected now would all stay with the first
  // worker, on keep-alive connections.
  if (!state?.hasStarted) throw new Unavailable('The workers are starting.');
  const { up, count } = state;
  if (up === count) return {};
  return { workers: `${up} of ${count}` };
}
