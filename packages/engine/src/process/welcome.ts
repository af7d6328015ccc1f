import type { LogOutput } from '@animal-store/log/log-output';
import { ApiKeyService, actorOf } from '../access/keys/api-key.service.ts';
import { collectionsOf, type Example, openModules } from '../api/module.ts';
import type { Collection } from '../api/resources/collection.ts';
import type { Config } from '../config/config.ts';
import { envFileVariable } from '../config/env-file.ts';
import type { Database } from '../database/database.ts';
import { closedRows, type Service } from '../feature.ts';
import type { Log } from '../runtime/log/log.ts';
import type { Server } from './service-types.ts';

/** How long (ms) the welcome message waits for earlier log lines. */
const earlierLinesTimeout = 500;

interface Starting {
  service: Service;
  config: Config;
  log: Log;
  output: LogOutput;
}

interface Started extends Pick<Server, 'collections'> {
  database: Database;
  address: string;
}

/** Logs the address, and prints the first key of a new store. */
export async function logStarted(
  { service, config, log, output }: Starting,
  { database, address, collections }: Started,
) {
  const { logger } = log;
  const pages = service.features.flatMap(
    ({ addresses }) => addresses?.({ config, values: config.values }) ?? [],
  );
  const about = {
    version: config.version,
    nodejs: process.version,
    address,
    pages: pages.join(' ') || undefined,
    envFile: process.env[envFileVariable(config.name)] || undefined,
    config: config.shown,
  };
  logger.info(about, 'started');
  const closed = closedRows(service, config, database);
  if (closed) logger.warn({}, closed);
  if (config.keys.bootstrapKey) {
    const advice =
      'a bootstrap key is set: it has all rights and never expires';
    logger.warn({ key: 0 }, advice);
    return;
  }
  if (!database.own) return;
  // Only one of several servers that start on an empty store prints a key.
  const actor = actorOf('start', process.env.SUDO_USER);
  const keys = new ApiKeyService(database, actor);
  const first = await database.exclusively(() => keys.issueFirst());
  if (!first) return;
  logger.info({ key: first.id }, 'first key issued');
  await output.flush(earlierLinesTimeout);
  const modules = await service.modules();
  const opened =
    collections ?? collectionsOf(openModules(modules, database, config.values));
  const collection = opened.find(({ name }) => !database.tenanted.has(name));
  const [example] = modules.flatMap(({ examples = [] }) => examples);
  const calls = firstCalls({ address, key: first.key }, collection, example);
  const lines = [
    `${config.about.title} is open at ${address}. This is its first API key; it is shown only now:`,
    `  ${first.key}`,
    'Try it:',
    ...calls.map((call) => `  ${call}`),
  ];
  const explored = pages.map((path) => address + path);
  if (explored.length > 0) lines.push(`Explore:  ${explored.join('   ')}`);
  process.stdout.write(`\n${lines.join('\n\n')}\n\n`);
}

/** Commands of a shell for both APIs of the first collection. */
export function firstCalls(
  { address, key }: { address: string; key: string },
  collection?: Collection,
  example?: Example,
) {
  const curl = `curl -H 'Authorization: Bearer ${key}'`;
  const send = (body: object, path: string) => {
    const json = JSON.stringify(body).replaceAll("'", "'\\''");
    return `${curl} -H 'Content-Type: application/json' \\\n    -d '${json}' ${address}${path}`;
  };
  const calls: string[] = [];
  if (collection) {
    const path = `/v1/${collection.name}`;
    calls.push(`${curl} ${address}${path}`);
    const { examples = [] } = collection.input as { examples?: object[] };
    const [input] = examples;
    if (input) calls.push(send(input, path));
  }
  if (example) {
    const { document, variables } = example;
    const query = document.replace(/\s+/g, ' ').trim();
    calls.push(send({ query, variables }, '/graphql'));
  }
  return calls;
}
