import { Workers } from '@animal-store/cluster';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { StoreError, serviceUnavailable } from '../errors.ts';
import type { LogSettings } from '../runtime/log/log.ts';
import type { Telemetry } from '../runtime/telemetry/telemetry.ts';
import { withTimeout } from '../runtime/with-timeout.ts';
import { openOperationsPort } from './operations-port.ts';
import { openDatabase, openTelemetry, type ProcessOptions, type Service } from './serve.ts';
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
  let workers: Workers<LogSettings> | undefined;
  const operations = await openOperationsPort(config, log, telemetry, () => checkWorkers(workers, telemetry));
  const drainTime = config.drainDelay + config.drainTimeout + grace;
  // Serves the limiters of all workers: invalid keys, and quotas without Redis.
  new RateLimiterClusterMaster();
  const { settings: shared, logger } = log;
  workers = new Workers({ program, count, shared, log: logger, output, drainTime, onGiveUp });
  log.onChange = (settings) => workers.share(settings);
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

/** Asks the workers, which respond within two seconds. Those that have not reported lately do not count. */
async function checkWorkers(workers: Workers<unknown> | undefined, { cluster }: Telemetry): Promise<object> {
  if (!workers) throw serviceUnavailable('The workers are starting.');
  const answer = await withTimeout(timeout, workers.ask(), () => new Error('No worker answers.')).catch((cause) => {
    throw new StoreError('SERVICE_UNAVAILABLE', (cause.errors?.[0] ?? cause).message, { cause });
  });
  const { up, options } = workers;
  const silent = cluster?.silent ?? 0;
  return { ...answer, ...(silent > 0 && { workers: `${up - silent} of ${options.count}` }) };
}
