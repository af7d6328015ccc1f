import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { ClusterWorker } from '../packages/cluster/src/worker.ts';
import type { LogOutput } from '../packages/log/src/log-output.ts';
import { Redactor } from '../packages/log/src/redactor.ts';
import { Database, type DatabaseOptions } from '../packages/postgres/src/database.ts';
import { ApiKeyService, actorOf, type IssuedKey } from './access/keys/api-key.service.ts';
import { secretPrefix } from './access/keys/secret.ts';
import { sendError } from './api/http/failures.ts';
import { dataHeaders } from './api/http/headers.ts';
import type { AppOptions } from './app.ts';
import type { Config } from './config.ts';
import { tryAgain } from './errors.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { preparedStore } from './prepared-store.ts';
import { type CheckReadiness, openOperationsPort } from './runtime/health.ts';
import type { Log, LogSettings } from './runtime/log/log.ts';
import { Telemetry, type TelemetryOptions } from './runtime/telemetry/telemetry.ts';
import { releasedVersion } from './version.ts';

/** The service in this process, or the parent of the workers. `main.ts` runs it. */
export interface Service {
  /** Logs the address when the service listens; undefined in a worker, whose parent logs it. */
  announce: (() => Promise<void>) | undefined;
  /** How long (ms) `drain` and `close` may take beyond the configured times. */
  closing: number;
  /** @param delay how long (ms) new requests are still served @returns whether all requests were finished */
  drain(delay: number): Promise<boolean>;
  close(): Promise<void>;
  /** Describes the work still in progress, for the log. */
  left(): { requests: number } | { workers: number };
}

/** The parts that a process creates before it serves or starts workers. */
export interface ProcessOptions {
  config: Config;
  log: Log;
  output: LogOutput;
  /** This process, when it is a worker. */
  worker: ClusterWorker<LogSettings> | undefined;
  /** Called when the embedded store crashes. */
  onLost(error: Error): void;
}

/** Maximum number of connections in the kernel's accept queue; Linux allows 4096 by default. */
const backlog = 4096;

/** Serves in this process. */
export async function serve(options: ProcessOptions): Promise<Service> {
  const { config, log, worker } = options;
  const telemetry = await openTelemetry(options, worker ? 'worker' : 'alone');
  const { observers } = telemetry;
  const database = await openDatabase(options, { observers: observers.databases });
  let app: FastifyInstance | undefined;
  const check: CheckReadiness = () => {
    if (!app) throw tryAgain('The service is starting.');
    return app.checkReadiness();
  };
  const operations = await openOperations(options, telemetry, check);
  const { buildApp } = await import('./app.ts');
  const apolloPlugins = await pluginsIn(config.apolloPlugins);
  app = await buildApp({ config, database, modules, apolloPlugins, log, worker, observers });
  const served = app;
  const address = await served.listen({ port: config.port, host: config.host, backlog });
  worker?.onAsk(check);
  worker?.ready(address);
  return {
    announce: worker ? undefined : () => announce(options, database, address),
    closing: telemetry.closing,
    async drain(delay) {
      served.startDraining();
      if (delay > 0) await sleep(delay);
      await served.close();
      return true;
    },
    async close() {
      await telemetry.close();
      await operations?.close();
      await database.close();
    },
    left: () => ({ requests: served.activeRequests.count }),
  };
}

/** Loads plugins of Apollo Server. @param path of a module, whose default export is a plugin or an array of them */
async function pluginsIn(path: string | undefined): Promise<NonNullable<AppOptions['apolloPlugins']>> {
  if (!path) return [];
  const module = await import(pathToFileURL(resolve(path)).href).catch((cause: Error) => {
    throw new Error(`${path} (APOLLO_PLUGINS) cannot be loaded: ${cause.message}`, { cause });
  });
  const plugins = [module.default].flat();
  if (plugins.every((plugin) => typeof plugin === 'object' && plugin !== null)) return plugins;
  throw new Error(
    `${path} (APOLLO_PLUGINS) must have a default export: a plugin of Apollo Server, or an array of them.`,
  );
}

export function openTelemetry(options: ProcessOptions, role: TelemetryOptions['role']): Promise<Telemetry> {
  const { config, log, output } = options;
  return Telemetry.open({
    version: releasedVersion(),
    isMeasured: config.operations.port > 0,
    role,
    database: config.database.url ? 'postgres' : 'embedded',
    hasTrustedDocuments: config.graphql.trustedDocuments !== undefined,
    env: process.env,
    log: log.logger,
    output,
    redactor: new Redactor(secretPrefix, config.keys.bootstrapKey),
  });
}

/** Opens the operations port, if configured. It comes before the service's, so that a port in use fails the start. */
export async function openOperations(
  { config, log, worker }: ProcessOptions,
  telemetry: Telemetry,
  check: CheckReadiness,
): Promise<FastifyInstance | undefined> {
  if (config.operations.port === 0 || worker) return undefined;
  const plugins = [log.page, ...telemetry.pages];
  return openOperationsPort({ ...config.operations, check, plugins, headers: dataHeaders, sendError });
}

/** Opens and migrates the database. A worker does not migrate, because its parent has done so. */
export async function openDatabase(
  { config, log: { logger: log }, worker, onLost }: ProcessOptions,
  overrides: Partial<DatabaseOptions>,
): Promise<Database> {
  const prepared = config.migrateOnStart ? preparedStore(config.database) : undefined;
  const options = { ...config.database, log, prepared, onLost, ...overrides };
  const database = await Database.open(options, modelOf(modules));
  if (worker) return database;
  const { advice } = database;
  if (advice) log.warn({ statements: advice }, 'a pooler drops session settings: set them on the role');
  await database.reach();
  if (config.migrateOnStart) {
    await database.migrate();
    return database;
  }
  // `/readyz` answers 503 until they are applied.
  const migrations = await database.pending();
  if (migrations.length > 0) log.warn({ migrations }, 'migrations are waiting to be applied');
  return database;
}

/** How long (ms) the welcome message waits for earlier log lines. */
const lastLines = 500;

/** Logs the address, and prints the first key of a new store. */
export async function announce(
  { config, log: { logger: log }, output }: ProcessOptions,
  database: Database,
  address: string,
): Promise<void> {
  const envFile = process.env.ANIMAL_STORE_ENV_FILE || undefined;
  const about = { version: releasedVersion(), nodejs: process.version, address, envFile, config: config.shown };
  log.info(about, 'started');
  if (config.keys.bootstrapKey) log.warn({ key: 0 }, 'a bootstrap key is set: it has all rights and never expires');
  const first = database.embedded && !config.keys.bootstrapKey && (await firstKey(database));
  if (!first) return;
  log.info({ key: first.id }, 'first key issued');
  await output.flush(lastLines);
  process.stdout.write(welcome(address, first.key));
}

/** Only one of several servers that start on an empty store prints a key. */
function firstKey(database: Database): Promise<IssuedKey | undefined> {
  const actor = actorOf('start', process.env.SUDO_USER);
  return database.exclusively(() => new ApiKeyService(database, actor).issueFirst());
}

/** The message for a new user, with commands to paste into a shell. */
function welcome(address: string, key: string): string {
  return `
The animal store is open at ${address}. This is its first API key; it is shown only now:

  ${key}

Try it:

  curl -H 'Authorization: Bearer ${key}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"name":"Rex","categoryId":5}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"query":"{ pets(limit: 5) { id name categoryId status } }"}' ${address}/graphql

Explore:  ${address} (front page)   ${address}/graphiql (GraphiQL)   ${address}/docs (REST reference)

`;
}
