import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { inMemory } from '../access/limits/limiter.ts';
import type { AppOptions } from '../app.ts';
import { Database } from '../database/database.ts';
import { withTimeout } from '../database/with-timeout.ts';
import { Unavailable } from '../errors.ts';
import {
  databaseOptions,
  type Running,
  type Service,
  startFeatures,
} from '../feature.ts';
import type { CheckReadiness } from '../runtime/health.ts';
import type { Log } from '../runtime/log/log.ts';
import { observersOf } from '../runtime/observers.ts';
import { migrate } from './migrate.ts';
import { modelOf } from './model.ts';
import { openOperationsPort } from './operations-port.ts';
import {
  lastStep,
  type Opened,
  type Server,
  type ServiceProcess,
  type Serving,
} from './service-types.ts';
import { logStarted } from './welcome.ts';

interface ProcessOptions
  extends Pick<ServiceProcess, 'config' | 'log' | 'output'>,
    Serving {
  service: Service;
  /** Called when the own store crashes. */
  onLost(error: Error): void;
}

/**
 * Maximum number of connections in the kernel's accept queue; Linux allows 4096
 * by default.
 */
const backlog = 4096;

/** Serves in this process, or starts the workers that serve in its place. */
export async function serve(options: ProcessOptions) {
  const { config, log, output, limiters = inMemory, startWorkers } = options;
  const { hasParent: isWorker = false } = options;
  if (!isWorker) for (const one of config.misspelt) log.logger.warn(one);
  const context = { config, log: log.logger, limiters, output, isWorker };
  const isParent = startWorkers !== undefined;
  const hook = isParent ? 'supervise' : 'start';
  const { features } = options.service;
  const parts = await startFeatures(features, context, hook);
  const database = await openDatabase(options, parts);
  let server: Server | undefined;
  const check: CheckReadiness = async () => {
    if (!server) throw new Unavailable('The service is starting.');
    return server.check();
  };
  let operations: FastifyInstance | undefined;
  if (!isWorker)
    operations = await openOperationsPort(config, log, parts, check);
  server = startWorkers?.() ?? (await listen(options, { database, parts }));
  const { address, collections, left } = server;
  return {
    address,
    /** Logs that the service listens, unless a parent logs it. */
    async logStarted() {
      if (isWorker) return;
      const started = { database, address: await address, collections };
      await logStarted(options, started);
    },
    async close(delay: number) {
      const isClean = await server.close(delay);
      const namedParts = Object.fromEntries(
        parts.map((part) => [part.name, part]),
      );
      await closeAll(log, { operations, database, ...namedParts });
      return isClean;
    },
    left,
  };
}

/** Serves in this process. */
async function listen(
  options: ProcessOptions,
  opened: Pick<AppOptions, 'database' | 'parts'>,
): Promise<Server> {
  const { config, log, limiters, readiness, onListen } = options;
  const { port, host } = config;
  const { buildApp } = await import('../app.ts');
  const app = await buildApp({
    ...opened,
    config,
    modules: await options.service.modules(),
    log,
    limiters,
    others: readiness,
  });
  const address = await app.listen({ port, host, backlog });
  onListen?.(address, app.checkReadiness);
  return {
    address,
    check: app.checkReadiness,
    collections: app.collections,
    async close(delay) {
      app.isDraining = true;
      if (delay > 0) await sleep(delay);
      return closeAll(log, { requests: app }, config.drainTimeout + lastStep);
    },
    left: () => ({ requests: app.activeRequests.count }),
  };
}

/**
 * Closes parts of the process. One that fails or hangs does not block others.
 *
 * @returns whether all are closed
 */
async function closeAll(
  { logger }: Log,
  parts: Record<string, Opened | undefined>,
  timeout = lastStep,
) {
  const late = () => new Error(`It is still open after ${timeout} ms.`);
  const closed = Object.entries(parts).map(async ([part, opened]) => {
    try {
      const end = Promise.resolve(opened?.close?.());
      await withTimeout(timeout, end, late);
      return true;
    } catch (err) {
      logger.warn({ part, err }, 'a part is not closed');
      return false;
    }
  });
  return (await Promise.all(closed)).every(Boolean);
}

/** Opens the database, and migrates it unless a parent has done so. */
async function openDatabase(
  { service, config, log: { logger: log }, hasParent, onLost }: ProcessOptions,
  parts: readonly Running[],
) {
  const options = {
    ...(await databaseOptions(service.features, config)),
    log,
    onLost,
    advice: hasParent ? undefined : {},
    observers: observersOf(parts, 'database'),
  };
  const openReads = parts.find(({ reads }) => reads)?.reads;
  const model = modelOf(await service.modules());
  const database = await Database.open(options, model, openReads);
  if (hasParent) return database;
  await database.assertReachable();
  if (config.migrateOnStart) {
    await migrate(database, service);
    return database;
  }
  // `/readyz` answers 503 until they are applied.
  const migrations = await database.pending();
  if (migrations.length === 0) await database.assertColumns();
  else log.warn({ migrations }, 'migrations are waiting to be applied');
  return database;
}
