import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import { buildApp } from './app.ts';
import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
import { LogOutput } from './http/log-output.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { issueFirstKey, welcome } from './keys/first-key.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { startFailure } from './operations/start-failure.ts';
import { preparedStore } from './prepared-store.ts';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const;
// close-with-grace would handle these, too. A WebAssembly trap is a SIGSEGV that V8 turns into an exception, and a
// crash must stay a crash.
const faults = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;
/** Time limit (ms) for the last log lines. */
const lastWords = 1000;

/** The process: configuration, database, app, listen, shutdown. Only this file exits or handles signals. */
async function main(): Promise<void> {
  // Until there is something to drain, a signal ends the process at once, even while a migration waits.
  let stop: () => void = () => process.exit(0);
  // Ctrl-C under `npm start` arrives twice, from the terminal and from npm: the second must not cut the drain short.
  for (const signal of stopSignals) process.on(signal, () => stop());

  const config = loadConfig(process.env);
  const prepared = config.migrateOnStart ? preparedStore(config.database) : undefined;
  const database = await Database.open({ ...config.database, prepared, onLost: fail }, modelOf(modules));
  await database.reach();
  if (config.migrateOnStart) await database.migrate();

  const log = new LogOutput();
  const app = await buildApp({ config, database, modules, log });
  const address = await app.listen({ port: config.port, host: config.host });

  const { close } = closeWithGrace(
    { delay: config.drainDelay + config.drainTimeout, logger: app.log, skip: [...stopSignals, ...faults] },
    async ({ err }) => {
      if (err) app.log.fatal({ err }, 'unforeseen failure');
      else app.log.info('draining');
      app.startDraining();
      if (!err) await sleep(config.drainDelay);
      await app.close();
      await database.close();
      await log.close(lastWords);
    },
  );
  stop = () => {
    stop = () => undefined;
    close();
  };

  const key = database.isEmbedded && !config.keys.bootstrapKey && (await firstKey(database));
  if (key) process.stdout.write(welcome(address, key));
}

/** Two servers that start at once on an empty store print only one key. */
function firstKey(database: Database): Promise<string | undefined> {
  return database.exclusively(() => issueFirstKey(new ApiKeyService(database)));
}

function fail(error: unknown): never {
  process.stderr.write(`animal-store: ${startFailure(error)}\n`);
  process.exit(1);
}

main().catch(fail);
