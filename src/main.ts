import { availableParallelism } from 'node:os';
import closeWithGrace from 'close-with-grace';
import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
import { LogOutput } from './http/log-output.ts';
import { createLog } from './http/logging.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { issueFirstKey, welcome } from './keys/first-key.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { startFailure } from './operations/start-failure.ts';
import { preparedStore } from './prepared-store.ts';
import type { Service } from './serve.ts';
import { Parent } from './workers/parent.ts';
import { Workers } from './workers/workers.ts';

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
  // Until there is something to drain, a signal ends the process at once, even while a migration waits.
  let stop: () => void = () => process.exit(0);
  // Ctrl-C under `npm start` arrives twice, from the terminal and from npm: the second must not cut the drain short.
  for (const signal of stopSignals) process.on(signal, () => stop());
  const parent = Parent.ofThisProcess();
  parent?.onLost(() => stop());

  const config = loadConfig(process.env);
  const count = config.workers === 'auto' ? availableParallelism() : config.workers;
  const isParent = count > 1 && !parent;
  const output = new LogOutput();
  const log = createLog(config.logLevel, output, parent?.number);
  const prepared = config.migrateOnStart ? preparedStore(config.database) : undefined;
  const readUrls = isParent ? undefined : config.database.readUrls;
  const options = { ...config.database, readUrls, log, prepared, onLost: fail };
  const database = await Database.open(options, modelOf(modules));
  // What the parent has done need not be done again, nor keep a worker from starting while the database is away.
  if (!parent) {
    const { advice } = database;
    if (advice) log.warn({ statements: advice }, 'a pooler drops session settings: set them on the role');
    await database.reach();
    if (config.migrateOnStart) await database.migrate();
  }
  // The embedded store stays with the parent: a worker that is killed does not take it along.
  if (isParent && !database.isEmbedded) await database.close();

  const drainTime = config.drainDelay + config.drainTimeout;
  const onGiveUp = (reason: string | undefined) => {
    if (reason) tell(reason);
    stop();
  };
  const service: Service = isParent
    ? Workers.start({ count, log, output, patience: drainTime + grace, onGiveUp })
    : await (await import('./serve.ts')).serve({ config, database, modules, log, parent });

  const { close } = closeWithGrace(
    { delay: drainTime + (isParent ? 2 * grace : 0), logger: log, skip: [...stopSignals, ...faults] },
    async ({ err }) => {
      if (err) log.fatal({ err }, 'unforeseen failure');
      else log.info('draining');
      const isClean = await service.drain(err ? 0 : config.drainDelay);
      if (!isParent || database.isEmbedded) await database.close();
      await output.close(lastWords);
      if (!isClean) process.exit(1);
    },
  );
  stop = () => {
    stop = () => undefined;
    close();
  };
  const address = await service.listening;
  const key = !parent && database.isEmbedded && !config.keys.bootstrapKey && (await firstKey(database));
  if (key) process.stdout.write(welcome(address, key));
}

/** Two servers that start at once on an empty store print only one key. */
function firstKey(database: Database): Promise<string | undefined> {
  return database.exclusively(() => issueFirstKey(new ApiKeyService(database)));
}

function tell(reason: string): void {
  process.stderr.write(`animal-store: ${reason}\n`);
}

function fail(error: unknown): never {
  tell(startFailure(error));
  process.exit(1);
}

main().catch(fail);
