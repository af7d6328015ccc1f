import { setTimeout as sleep } from 'node:timers/promises';
import { Workers } from '@animal-store/cluster';
import type { ClusterWorker } from '@animal-store/cluster/worker';
import type { LogOutput } from '@animal-store/log/log-output';
import type { FastifyInstance } from 'fastify';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { inMemory, inParent } from '../access/limits/limiter.ts';
import type { Config } from '../config/config.ts';
import { Database, type DatabaseOptions } from '../database/database.ts';
import type { OpenReads } from '../database/reads.ts';
import { settingsDropped } from '../database/sessions.ts';
import { withTimeout } from '../database/with-timeout.ts';
import { StoreError, Unavailable } from '../errors.ts';
import { databaseOptions, type Running, startFeatures } from '../feature.ts';
import { features } from '../features.ts';
import { modelOf } from '../modules/mikro-orm.config.ts';
import { modules } from '../modules/modules.ts';
import type { CheckReadiness } from '../runtime/health.ts';
import type { Log, LogSettings } from '../runtime/log/log.ts';
import { observersOf } from '../runtime/observers.ts';
import { migrate } from './migrate.ts';
import { openOperationsPort } from './operations-port.ts';
import { logStarted } from './welcome.ts';

/**
 * The service in this process, or the parent of the workers. `main.ts` runs it.
 */
export interface Service {
  /**
   * Logs that the service listens; undefined in a worker, whose parent logs it.
   */
  logStarted: (() => Promise<void>) | undefined;
  /**
   * @param delay how long (ms) new requests are still served @returns whether
   *   all requests were finished
   */
  close(delay: number): Promise<boolean>;
  /** Describes the work still in progress, for the log. */
  left(): { requests: number } | { workers: number };
}

/** The parts that a process creates before it serves or starts workers. */
interface ProcessOptions {
  config: Config;
  log: Log;
  output: LogOutput;
  worker: ClusterWorker<LogSettings> | undefined;
  /** Called when the own store crashes. */
  onLost(error: Error): void;
}

/**
 * Maximum number of connections in the kernel's accept queue; Linux allows 4096
 * by default.
 */
const backlog = 4096;

export async function serve(options: ProcessOptions): Promise<Service> {
  const { config, log, output, worker } = options;
  const limiters = worker ? inParent : inMemory;
  const { logger } = log;
  const parts = await startFeatures(features, {
    config,
    log: logger,
    limiters,
    output,
    isWorker: worker !== undefined,
  });
  const database = await openDatabase(
    options,
    observersOf(parts, 'database'),
    parts.find(({ reads }) => reads)?.reads,
  );
  let app: FastifyInstance | undefined;
  const check: CheckReadiness = () => {
    if (!app) throw new Unavailable('The service is starting.');
    return app.checkReadiness();
  };
  const operations = worker
    ? undefined
    : await openOperationsPort(config, log, parts, check);
  const { buildApp } = await import('../app.ts');
  app = await buildApp({
    config,
    database,
    modules,
    log,
    worker,
    limiters,
    parts,
  });
  const served = app;
  const address = await served.listen({
    port: config.port,
    host: config.host,
    backlog,
  });
  worker?.onAsk(check);
  worker?.ready(address);
  return {
    logStarted: worker
      ? undefined
      : () => logStarted(options, database, address),
    async close(delay) {
      served.isDraining = true;
      if (delay > 0) await sleep(delay);
      const longest = config.drainTimeout + lastStep;
      const isClean = await close(log, { requests: served }, longest);
      await close(log, { operations, database, ...byName(parts) });
      return isClean;
    },
    left: () => ({ requests: served.activeRequests.count }),
  };
}

const byName = (parts: readonly Running[]) =>
  Object.fromEntries(parts.map((part) => [part.name, part]));

/** How long (ms) a step of the shutdown may take after the last request. */
const lastStep = 3000;
/** How long (ms) a worker may take after its drain: two steps, and the log. */
const afterDrain = 2 * lastStep + 2000;

/**
 * Closes parts of the process. One that fails or hangs does not block others.
 *
 * @returns whether all are closed
 */
async function close(
  { logger }: Log,
  parts: Record<string, { close?(): PromiseLike<unknown> } | undefined>,
  timeout = lastStep,
): Promise<boolean> {
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

/**
 * Timeout (ms) of a worker's readiness. A worker answers within two seconds.
 */
const timeout = 2500;

/**
 * Starts workers, which run the same program, and serves their metrics and
 * health on the operations port.
 *
 * @param onGiveUp called once when no worker can be started
 */
export async function supervise(
  options: ProcessOptions,
  {
    program,
    count,
    onGiveUp,
  }: {
    program: string;
    count: number;
    onGiveUp(reason: string | undefined): void;
  },
): Promise<Service> {
  const { config, log, output } = options;
  const { settings: shared, logger } = log;
  const parts = await startFeatures(
    features,
    { config, log: logger, limiters: inMemory, output },
    'supervise',
  );
  const database = await openDatabase(options);
  // The parent owns the embedded store, so that it survives a killed worker.
  if (!database.own) await database.close();
  let workers: Workers<LogSettings> | undefined;
  const operations = await openOperationsPort(config, log, parts, () =>
    checkWorkers(workers),
  );
  const drainTime = config.drainDelay + config.drainTimeout + afterDrain;
  // Serves the limiters of all workers: invalid keys, and quotas without Redis.
  new RateLimiterClusterMaster();
  workers = new Workers({
    program,
    count,
    shared,
    log: logger,
    output,
    drainTime,
    onGiveUp,
  });
  log.onChange = (settings) => workers.share(settings);
  return {
    logStarted: async () =>
      logStarted(options, database, await workers.listening),
    async close() {
      const isClean = await workers.drain();
      const own = database.own ? database : undefined;
      await close(log, { operations, database: own, ...byName(parts) });
      return isClean;
    },
    left: () => ({ workers: workers.up }),
  };
}

/**
 * Asks the workers, which respond within two seconds. Those that have not
 * answered an earlier question do not count.
 */
async function checkWorkers(
  workers: Workers<unknown> | undefined,
): Promise<object> {
  if (!workers) throw new Unavailable('The workers are starting.');
  const answer = await withTimeout(
    timeout,
    workers.ask(),
    () => new Error('No worker answers.'),
  ).catch((cause) => {
    throw new StoreError(
      'SERVICE_UNAVAILABLE',
      (cause.errors?.[0] ?? cause).message,
      { cause },
    );
  });
  const { up, silent, options } = workers;
  return {
    ...answer,
    ...(silent > 0 && { workers: `${up - silent} of ${options.count}` }),
  };
}

/**
 * Opens and migrates the database. A worker does not migrate, because its
 * parent has done so.
 */
async function openDatabase(
  { config, log: { logger: log }, worker, onLost }: ProcessOptions,
  observers: DatabaseOptions['observers'] = [],
  openReads?: OpenReads,
): Promise<Database> {
  const onAdvice = (statements: string[]) =>
    log.warn({ statements }, settingsDropped);
  const options = {
    ...(await databaseOptions(features, config)),
    log,
    onLost,
    onAdvice: worker ? undefined : onAdvice,
    observers,
  };
  const database = await Database.open(options, modelOf(modules), openReads);
  if (worker) return database;
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
