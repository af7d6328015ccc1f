import { Workers } from '@animal-store/cluster';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { StoreError, tryAgain } from '../errors.ts';
import { openDatabase, openOperations, openTelemetry, type ProcessOptions, type Service } from './serve.ts';
import { logStarted } from './welcome.ts';

/** How long (ms) the parent waits beyond the workers' own time limit. */
const grace = 3000;
/** Timeout (ms) of a worker's readiness. A worker answers within two seconds. */
const timeout = 2500;

/**
 * Starts workers, which run the same program, and serves their metrics and health on the operations port.
 *
 * @param onGiveUp called once when no worker can be started
 */
export async function supervise(
  options: ProcessOptions,
  { program, count, onGiveUp }: { program: string; count: number; onGiveUp(reason: string | undefined): void },
): Promise<Service> {
  const { config, log, output } = options;
  const telemetry = await openTelemetry(options, 'parent');
  const database = await openDatabase(options, { readUrls: undefined });
  // The parent owns the embedded store, so that it survives a killed worker.
  if (!database.embedded) await database.close();
  let address: string | undefined;
  const operations = await openOperations(options, telemetry, () => checkWorkers(address));
  const drainTime = config.drainDelay + config.drainTimeout + grace;
  // Serves the limiters of all workers: invalid keys, and quotas without Redis.
  new RateLimiterClusterMaster();
  const { settings: shared, logger } = log;
  const workers = new Workers({ program, count, shared, log: logger, output, drainTime, onGiveUp });
  log.onChange = (settings) => workers.share(settings);
  void workers.listening.then((listensOn) => {
    address = listensOn;
  });
  return {
    logStarted: async () => logStarted(options, database, await workers.listening),
    closing: 2 * grace,
    drain: () => workers.drain(),
    async close() {
      await telemetry.close();
      await operations?.close();
      if (database.embedded) await database.close();
    },
    left: () => ({ workers: workers.up }),
  };
}

/** Queries the readiness of a worker. */
async function checkWorkers(address: string | undefined): Promise<object> {
  if (!address) throw tryAgain('The workers are starting.');
  const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(timeout) }).catch((cause) => {
    throw new StoreError('SERVICE_UNAVAILABLE', 'No worker answers.', { cause });
  });
  const { status: _, ...answer } = (await response.json()) as { status: unknown; message?: string };
  if (!response.ok) throw new StoreError('SERVICE_UNAVAILABLE', answer.message ?? 'The workers cannot serve.');
  return answer;
}
