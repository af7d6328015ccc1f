import type { LogOutput } from '@animal-store/log/log-output';
import { ApiKeyService, actorOf } from '../access/keys/api-key.service.ts';
import {
  aboutOf,
  collectionsOf,
  type Example,
  openModules,
} from '../api/module.ts';
import type { Collection } from '../api/resources/collection.ts';
import { type Config, releasedVersion } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { features } from '../features.ts';
import { modules } from '../modules/modules.ts';
import type { Log } from '../runtime/log/log.ts';
import type { Server } from './serving.ts';

/** How long (ms) the welcome message waits for earlier log lines. */
const earlierLinesTimeout = 500;

interface Started extends Pick<Server, 'collections'> {
  database: Database;
  address: string;
}

/** Logs the address, and prints the first key of a new store. */
export async function logStarted(
  {
    config,
    log: { logger: log },
    output,
  }: { config: Config; log: Log; output: LogOutput },
  { database, address, collections }: Started,
) {
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
  await output.flush(earlierLinesTimeout);
  const explored = pages.map((path) => address + path);
  const [collection] =
    collections ?? collectionsOf(openModules(modules, database, config.values));
  const [example] = modules.flatMap(({ examples = [] }) => examples);
  const calls = firstCalls({ address, key: first.key }, collection, example);
  const lines = [
    `${aboutOf(modules).title} is open at ${address}. This is its first API key; it is shown only now:`,
    `  ${first.key}`,
    'Try it:',
    ...calls.map((call) => `  ${call}`),
    ...(explored.length > 0 ? [`Explore:  ${explored.join('   ')}`] : []),
  ];
  process.stdout.write(`\n${lines.join('\n\n')}\n\n`);
}

/** Commands of a shell for both APIs of the first collection. */
export function firstCalls(
  { address, key }: { address: string; key: string },
  collection?: Collection,
  example?: Example,
): string[] {
  const curl = `curl -H 'Authorization: Bearer ${key}'`;
  const send = (body: object, path: string) => {
    const json = JSON.stringify(body).replaceAll("'", "'\\''");
    return `${curl} -H 'Content-Type: application/json' \\\n    -d '${json}' ${address}${path}`;
  };
  const calls: string[] = [];
  if (collection) {
    const path = `/v1/${collection.name}`;
    const { examples = [] } = collection.input as { examples?: object[] };
    calls.push(`${curl} ${address}${path}`);
    calls.push(...examples.slice(0, 1).map((input) => send(input, path)));
  }
  if (example) {
    const { document, variables } = example;
    const query = document.replace(/\s+/g, ' ').trim();
    calls.push(send({ query, variables }, '/graphql'));
  }
  return calls;
}
