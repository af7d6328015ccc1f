import { StoreError, tryAgain } from './errors.ts';
import { Workers } from './runtime/cluster/workers.ts';
import { announce, openDatabase, openOperations, openTelemetry, type ProcessOptions, type Service } from './serve.ts';

/** How long (ms) the parent waits for workers whose own time is up. */
const grace = 3000;
/** How long (ms) a worker may take to say whether it is ready: it answers within two seconds itself. */
const timeout = 2500;

/**
 * Starts workers, each of which runs the same program, and serves their metrics and health on the port for operators.
 *
 * @param onGiveUp called once, when no worker can be started
 */
export async function supervise(
  options: ProcessOptions,
  { program, count, onGiveUp }: { program: string; count: number; onGiveUp(reason: string | undefined): void },
): Promise<Service> {
  const { config, log, output } = options;
  const telemetry = await openTelemetry(options, 'parent');
  const database = await openDatabase(options, { readUrls: undefined });
  // The embedded store stays with the parent: a worker that is killed does not take it along.
  if (!database.isEmbedded) await database.close();
  let address: string | undefined;
  const operations = await openOperations(options, telemetry, () => checkWorkers(address), true);
  const drainTime = config.drainDelay + config.drainTimeout + grace;
  const workers = new Workers({ program, count, log, output, drainTime, onGiveUp });
  void workers.listening.then((listensOn) => {
    address = listensOn;
  });
  return {
    listening: workers.listening,
    announce: (listensOn) => announce(options, database, listensOn),
    closing: 2 * grace,
    drain: () => workers.drain(),
    async close() {
      await telemetry.close();
      await operations?.close();
      if (database.isEmbedded) await database.close();
    },
    left: () => ({ workers: workers.up }),
  };
}

/** Asks one of the workers. */
async function checkWorkers(address: string | undefined): Promise<object> {
  if (!address) throw tryAgain('The workers are starting.');
  const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(timeout) }).catch((cause) => {
    throw new StoreError('SERVICE_UNAVAILABLE', 'No worker answers.', { cause });
  });
  const { status: _, ...answer } = (await response.json()) as { status: unknown; message?: string };
  if (!response.ok) throw new StoreError('SERVICE_UNAVAILABLE', answer.message ?? 'The workers cannot serve.');
  return answer;
}
