import { availableParallelism } from 'node:os';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import { ApiKeyService, actorOf, type IssuedKey, welcome } from './access/keys/api-key.service.ts';
import { secretPrefix } from './access/keys/secret.ts';
import { sendError } from './api/http/errors.ts';
import { type Config, loadConfig } from './config.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { preparedStore } from './prepared-store.ts';
import { Parent } from './runtime/cluster/parent.ts';
import { Workers } from './runtime/cluster/workers.ts';
import { openOperationsPort } from './runtime/health/port.ts';
import { LogControl } from './runtime/log/log-control.ts';
import { LogOutput } from './runtime/log/log-output.ts';
import { logSettings } from './runtime/log/log-settings.ts';
import { Redactor } from './runtime/log/redact.ts';
import type { DatabaseObserver } from './runtime/telemetry/observers.ts';
import { Telemetry } from './runtime/telemetry/telemetry.ts';
import type { Service } from './serve.ts';
import { startFailure } from './start-failure.ts';
import { Database } from './storage/database/database.ts';
import { assertNode, releasedVersion } from './version.ts';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const;
// close-with-grace would handle these, too. A WebAssembly trap is a SIGSEGV that V8 turns into an exception, and a
// crash must stay a crash.
const faults = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;
/** Time limit (ms) for the last log lines. */
const lastWords = 1000;
/** How long (ms) a parent waits for workers whose own time is up. */
const grace = 3000;

/**
 * The process: configuration, database, app, listen, shutdown. It is the service by itself; or the parent of workers
 * that are, each of which runs this, too. Only this file exits or handles signals.
 */
async function main(): Promise<void> {
  assertNode();
  // Until there is something to drain, a signal ends the process at once, even while a migration waits.
  let stop: (reason: string) => void = () => process.exit(0);
  // Ctrl-C under `npm start` arrives twice, from the terminal and from npm: the second must not cut the drain short.
  for (const signal of stopSignals) process.on(signal, () => stop(signal));
  const parent = Parent.ofThisProcess();
  parent?.onLost(() => stop('the parent has gone'));

  const config = loadConfig(process.env);
  const count = config.workers === 'auto' ? availableParallelism() : config.workers;
  const isParent = count > 1 && !parent;
  const output = new LogOutput();
  const control = new LogControl(config.log, output, parent?.number);
  const { log } = control;
  parent?.onLog((settings) => control.set(settings));
  const redactor = new Redactor(secretPrefix, config.keys.bootstrapKey);
  const telemetry = await Telemetry.open({
    version: releasedVersion(),
    isMeasured: config.operations.port > 0,
    serves: !isParent,
    database: config.database.url ? 'postgres' : 'embedded',
    hasTrustedDocuments: config.graphql.trustedDocuments !== undefined,
    env: process.env,
    log,
    output,
    redactor,
  });
  if (parent) parent.onQuestion = () => telemetry.report();
  stop = (reason) => {
    log.info({ reason }, 'ended before it was open');
    process.exit(0);
  };
  const { observers } = telemetry;
  const database = await openDatabase(config, {
    log,
    observers: observers.databases,
    isParent,
    isWorker: parent !== undefined,
  });
  // The embedded store stays with the parent: a worker that is killed does not take it along.
  if (isParent && !database.isEmbedded) await database.close();

  const drainTime = config.drainDelay + config.drainTimeout;
  const onGiveUp = (reason: string | undefined) => {
    if (reason) tell(reason);
    stop('workers cannot serve');
  };
  let workers: Workers | undefined;
  // One port for all workers: their parent's. It is opened first, so that a port that is taken stops the start.
  const operations =
    config.operations.port > 0 && !parent
      ? await openOperationsPort({
          ...config.operations,
          sendError,
          plugins: [logSettings(control), ...(await telemetry.pages(isParent ? () => workers : undefined))],
        })
      : undefined;
  if (isParent)
    workers = Workers.start({
      program: import.meta.filename,
      count,
      control,
      output,
      patience: drainTime + grace,
      onGiveUp,
    });
  const service: Service =
    workers ??
    (await (await import('./serve.ts')).serve({ config, database, modules, log: control, parent, observers }));

  let reason: string | undefined;

  const { close } = closeWithGrace(
    {
      delay: drainTime + (isParent ? 2 * grace : telemetry.lastSpans),
      logger: log,
      skip: [...stopSignals, ...faults],
      onTimeout: (ms: number) => log.error({ ms, ...service.left() }, 'closed before all was finished'),
    },
    async ({ err }) => {
      const began = performance.now();
      if (err) log.fatal({ err }, 'unforeseen failure');
      else log.info({ reason }, 'draining');
      const isClean = await service.drain(err ? 0 : config.drainDelay);
      await telemetry.close();
      await operations?.close();
      if (!isParent || database.isEmbedded) await database.close();
      log.info({ ms: Math.round(performance.now() - began), isClean, ...service.left() }, 'closed');
      await output.close(lastWords);
      if (!isClean) process.exit(1);
    },
  );
  stop = (why) => {
    stop = () => undefined;
    reason = why;
    close();
  };
  const address = await service.listening;
  if (!parent) await announce(config, database, log, address);
}

interface OpenOptions {
  log: Logger;
  observers: DatabaseObserver[];
  /** Of workers, which do what is left to do. */
  isParent: boolean;
  isWorker: boolean;
}

/** Opens the database and migrates it. A worker's parent has done that: nothing keeps a worker from starting. */
async function openDatabase(config: Config, { log, observers, isParent, isWorker }: OpenOptions): Promise<Database> {
  const prepared = config.migrateOnStart ? preparedStore(config.database) : undefined;
  const readUrls = isParent ? undefined : config.database.readUrls;
  const options = { ...config.database, readUrls, log, prepared, onLost: fail, observers };
  const database = await Database.open(options, modelOf(modules));
  if (isWorker) return database;
  const { advice } = database;
  if (advice) log.warn({ statements: advice }, 'a pooler drops session settings: set them on the role');
  await database.reach();
  if (config.migrateOnStart) await database.migrate();
  else await reportPending(database, log);
  return database;
}

/** Says that the service can be reached, and prints the first key of a new store. */
async function announce(config: Config, database: Database, log: Logger, address: string): Promise<void> {
  log.info({ version: releasedVersion(), nodejs: process.version, address, config: config.shown }, 'started');
  if (config.keys.bootstrapKey) log.warn({ key: 0 }, 'a bootstrap key is set: it may do everything, and has no end');
  const first = database.isEmbedded && !config.keys.bootstrapKey && (await firstKey(database));
  if (!first) return;
  log.info({ key: first.id }, 'first key issued');
  process.stdout.write(welcome(address, first.key));
}

/** Two servers that start at once on an empty store print only one key. */
function firstKey(database: Database): Promise<IssuedKey | undefined> {
  const actor = actorOf('start', process.env.SUDO_USER);
  return database.exclusively(() => new ApiKeyService(database, actor).issueFirst());
}

/** Until somebody applies them, `/readyz` says 503. */
async function reportPending(database: Database, log: Logger): Promise<void> {
  const migrations = await database.pending();
  if (migrations.length > 0) log.warn({ migrations }, 'migrations are waiting to be applied');
}

function tell(reason: string): void {
  process.stderr.write(`animal-store: ${reason}\n`);
}

function fail(error: unknown): never {
  tell(startFailure(error));
  process.exit(1);
}

main().catch(fail);
