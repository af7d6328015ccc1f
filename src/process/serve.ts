import { setTimeout as sleep } from 'node:timers/promises';
import { inMemory } from '../access/limits/limiter.ts';
import type { AppOptions } from '../app.ts';
import { Database, type DatabaseOptions } from '../database/database.ts';
import type { OpenReads } from '../database/reads.ts';
import { settingsDropped } from '../database/sessions.ts';
import { withTimeout } from '../database/with-timeout.ts';
import { Unavailable } from '../errors.ts';
import { databaseOptions, startFeatures } from '../feature.ts';
import { features } from '../features.ts';
import { modelOf } from '../modules/mikro-orm.config.ts';
import { modules } from '../modules/modules.ts';
import type { CheckReadiness } from '../runtime/health.ts';
import type { Log } from '../runtime/log/log.ts';
import { observersOf } from '../runtime/observers.ts';
import { migrate } from './migrate.ts';
import { openOperationsPort } from './operations-port.ts';
import {
  lastStep,
  type Server,
  type ServiceProcess,
  type Serving,
} from './serving.ts';
import { logStarted } from './welcome.ts';

/** The running service. `main.ts` runs it. */
export interface RunningService extends Pick<Server, 'close' | 'left'> {
  /** Logs that the service listens; undefined where a parent logs it. */
  logStarted: (() => Promise<void>) | undefined;
}

interface ProcessOptions
  extends Pick<ServiceProcess, 'config' | 'log' | 'output'>,
    Serving {
  /** Called when the own store crashes. */
  onLost(error: Error): void;
}

/**
 * Maximum number of connections in the kernel's accept queue; Linux allows 4096
 * by default.
 */
const backlog = 4096;

/** Serves in this process, or opens what serves in its place. */
export async function serve(options: ProcessOptions): Promise<RunningService> {
  const { config, log, output, limiters = inMemory, open } = options;
  const { hasParent: isWorker = false } = options;
  const { logger } = log;
  if (!isWorker) for (const one of config.misspelt) logger.warn(one);
  const parts = await startFeatures(
    features,
    { config, log: logger, limiters, output, isWorker },
    open ? 'supervise' : 'start',
  );
  const database = await openDatabase(
    options,
    observersOf(parts, 'database'),
    parts.find(({ reads }) => reads)?.reads,
  );
  let server: Server | undefined;
  const check: CheckReadiness = async () => {
    if (!server) throw new Unavailable('The service is starting.');
    return server.check();
  };
  const operations = isWorker
    ? undefined
    : await openOperationsPort(config, log, parts, check);
  server = open?.() ?? (await listen(options, { database, parts }));
  const { address, left, collections } = server;
  return {
    logStarted: isWorker
      ? undefined
      : async () =>
          logStarted(options, {
            database,
            address: await address,
            collections,
          }),
    async close(delay) {
      const isClean = await server.close(delay);
      const own = Object.fromEntries(parts.map((part) => [part.name, part]));
      await close(log, { operations, database, ...own });
      return isClean;
    },
    left,
  };
}

/** Serves in this process. */
async function listen(
  { config, log, limiters, readiness, onListen }: ProcessOptions,
  opened: Pick<AppOptions, 'database' | 'parts'>,
): Promise<Server> {
  const { buildApp } = await import('../app.ts');
  const app = await buildApp({
    ...opened,
    config,
    modules,
    log,
    limiters,
    others: readiness,
  });
  const { port, host } = config;
  const address = await app.listen({ port, host, backlog });
  onListen?.(address, app.checkReadiness);
  return {
    address,
    check: app.checkReadiness,
    collections: app.collections,
    async close(delay) {
      app.isDraining = true;
      if (delay > 0) await sleep(delay);
      return close(log, { requests: app }, config.drainTimeout + lastStep);
    },
    left: () => ({ requests: app.activeRequests.count }),
  };
}

/**
 * Closes parts of the process. One that fails or hangs does not block others.
 *
 * @returns whether all are closed
 */
async function close(
  { logger }: Log,
  parts: Record<string, { close?(): PromiseLike<unknown> } | undefined>,
  timeout = lastStep,
) {
  const late = () => new Error(`It is still open after ${timeout} ms.`);
  const ends = Object.entries(parts).map(async ([part, opened]) => {
    const end = Promise.resolve(opened?.close?.());
    return withTimeout(timeout, end, late).then(
      () => true,
      (err) => logger.warn({ part, err }, 'a part is not closed'),
    );
  });
  return (await Promise.all(ends)).every(Boolean);
}

/** Opens the database, and migrates it unless a parent has done so. */
async function openDatabase(
  { config, log: { logger: log }, hasParent, onLost }: ProcessOptions,
  observers: DatabaseOptions['observers'] = [],
  openReads?: OpenReads,
): Promise<Database> {
  const onAdvice = (statements: string[]) =>
    log.warn({ statements }, settingsDropped);
  const options = {
    ...(await databaseOptions(features, config)),
    log,
    onLost,
    onAdvice: hasParent ? undefined : onAdvice,
    observers,
  };
  const database = await Database.open(options, modelOf(modules), openReads);
  if (hasParent) return database;
  await database.assertReachable();
  if (config.migrateOnStart) {
    await migrate(database);
    return database;
  }
  // `/readyz` answers 503 until they are applied.
  const migrations = await database.pending();
  if (migrations.length === 0) await database.assertColumns();
  else log.warn({ migrations }, 'migrations are waiting to be applied');
  return database;
}
