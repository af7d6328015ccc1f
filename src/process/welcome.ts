import type { LogOutput } from '@animal-store/log/log-output';
import { ApiKeyService, actorOf } from '../access/keys/api-key.service.ts';
import { type Config, releasedVersion } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { features } from '../features.ts';
import type { Log } from '../runtime/log/log.ts';

/** How long (ms) the welcome message waits for earlier log lines. */
const lastLines = 500;

/** Logs the address, and prints the first key of a new store. */
export async function logStarted(
  {
    config,
    log: { logger: log },
    output,
  }: { config: Config; log: Log; output: LogOutput },
  database: Database,
  address: string,
): Promise<void> {
  const envFile = process.env.ANIMAL_STORE_ENV_FILE || undefined;
  const pages = features.flatMap(
    ({ addresses }) => addresses?.(config.values) ?? [],
  );
  const about = {
    version: releasedVersion(),
    nodejs: process.version,
    address,
    pages: pages.join(' ') || undefined,
    envFile,
    config: config.shown,
  };
  log.info(about, 'started');
  if (config.keys.bootstrapKey)
    log.warn(
      { key: 0 },
      'a bootstrap key is set: it has all rights and never expires',
    );
  if (!database.own || config.keys.bootstrapKey) return;
  // Only one of several servers that start on an empty store prints a key.
  const keys = new ApiKeyService(
    database,
    actorOf('start', process.env.SUDO_USER),
  );
  const first = await database.exclusively(() => keys.issueFirst());
  if (!first) return;
  log.info({ key: first.id }, 'first key issued');
  await output.flush(lastLines);
  const explored = pages.map((path) => address + path);
  process.stdout.write(welcome(address, first.key, explored));
}

function welcome(address: string, key: string, pages: string[]): string {
  const explore = pages.length > 0 ? `Explore:  ${pages.join('   ')}\n\n` : '';
  return `
The animal store is open at ${address}. This is its first API key; it is shown only now:

  ${key}

Try it:

  curl -H 'Authorization: Bearer ${key}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"name":"Rex","categoryId":5}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"query":"{ pets(limit: 5) { id name categoryId status } }"}' ${address}/graphql

${explore}`;
}
