import closeWithGrace from 'close-with-grace';
import { buildApp } from './app.ts';
import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { issueFirstKey, welcome } from './keys/first-key.ts';
import { startFailure } from './operations/start-failure.ts';

// Ctrl-C under `npm start` arrives twice, from the terminal and from npm: a second signal must not cut the drain short.
const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** The process: configuration, database, app, listen; and the way back. The only file that exits or handles signals. */
async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const database = await Database.open({ ...config.database, onLost: fail });
  await database.reach();
  if (config.migrateOnStart) await database.migrate();

  const app = await buildApp({ config, database });
  const address = await app.listen({ port: config.port, host: config.host });

  const { close } = closeWithGrace(
    { delay: config.drainTimeout, logger: app.log, skip: [...stopSignals] },
    async ({ err }) => {
      if (err) app.log.fatal({ err }, 'unforeseen failure');
      else app.log.info('draining');
      await app.close();
      await database.close();
    },
  );
  let stopping = false;
  const stop = () => {
    if (!stopping) close();
    stopping = true;
  };
  for (const signal of stopSignals) process.on(signal, stop);

  const key = database.isEmbedded && !config.keys.bootstrapKey && (await firstKey(database));
  if (key) process.stdout.write(welcome(address, key));
}

/** Two servers that start at once on an empty store print one key between them. */
function firstKey(database: Database): Promise<string | undefined> {
  return database.exclusively(() => issueFirstKey(new ApiKeyService(database)));
}

function fail(error: unknown): never {
  process.stderr.write(`animal-store: ${startFailure(error)}\n`);
  process.exit(1);
}

main().catch(fail);
