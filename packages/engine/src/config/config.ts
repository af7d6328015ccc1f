import { existsSync, readFileSync } from 'node:fs';
import { enableCompileCache, findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { misspelt } from './env-file.ts';
import {
  flag,
  flagOrAuto,
  logFormat,
  logLevel,
  milliseconds,
  origins,
  port,
  postgresUrl,
  readVariables,
  secret,
  share,
  text,
  trustedProxies,
  type Variable,
  type VariableOwner,
  type Variables,
  whole,
  withoutSecrets,
} from './variables.ts';

/** What a service is, in its contract and on its pages. */
export interface About {
  title: string;
  description: string;
}

/** What texts say of a service. */
export interface Identity {
  /** The name of its command, log, sessions and metrics: `own-service`. */
  readonly name: string;
  readonly about: About;
  /** `import.meta.url` of a file beside its package.json. */
  readonly url: string;
  /** How a command begins in a shell; `name` by default. */
  readonly command?: string;
  /** Its items, in the plural, in headers of a quota; `items` by default. */
  readonly items?: string;
  /** The folder of the HTML pages at `/guide`, beside its package.json. */
  readonly guides?: string;
}

export const coreVariables = {
  PORT: port(4000, 'TCP port to listen on.'),
  HOST: text('127.0.0.1', 'Address to listen on; `0.0.0.0` or `::` for all.'),
  OPERATIONS_PORT: whole(0, 65_535)(
    0,
    'TCP port for operators, without keys; 0 for none (observe.md).',
  ),
  OPERATIONS_HOST: text('127.0.0.1', 'Address of the operations port.'),
  DATABASE_URL: postgresUrl(
    undefined,
    'PostgreSQL; without it, a store of its own (operate.md).',
  ),
  DATABASE_DIRECT_URL: postgresUrl(
    undefined,
    'The same database without the pooler, for migrations (scale.md).',
    'DATABASE_URL',
  ),
  DATABASE_POOL_MAX: whole(2, 1000)(
    10,
    'Most connections of each worker to PostgreSQL.',
  ),
  DATABASE_CONNECT_TIMEOUT_MS: milliseconds(
    5000,
    'Longest wait for a connection to PostgreSQL (operate.md).',
  ),
  DATABASE_STATEMENT_TIMEOUT_MS: milliseconds(
    10_000,
    'Longest time of a statement; answers: 1 s more (operate.md).',
  ),
  DATABASE_PREPARED_STATEMENTS: flagOrAuto(
    'auto',
    'Prepares statements; `auto`: unless behind a pooler (scale.md).',
  ),
  MIGRATE_ON_START: flag(
    true,
    'Applies pending migrations at the start (operate.md).',
  ),
  BOOTSTRAP_API_KEY: secret(
    undefined,
    'An API key that is valid as long as this is set (keys.md).',
  ),
  REVISION: text(undefined, 'Commit of this build; the image sets it.'),
  LOG_LEVEL: logLevel('info', 'Lowest level that is logged (logs.md).'),
  LOG_FORMAT: logFormat(
    'auto',
    'JSON lines; `auto`: short lines on a terminal (logs.md).',
  ),
  LOG_SAMPLE: share(
    1,
    'Share of the requests without a fault that are logged (logs.md).',
  ),
  TRUST_PROXY: trustedProxies(
    false,
    'Proxies whose `X-Forwarded-*` headers count, or the number of hops.',
  ),
  REQUEST_TIMEOUT_MS: milliseconds(
    30_000,
    'Longest time in which a request must arrive, with its body.',
  ),
  KEEP_ALIVE_TIMEOUT_MS: milliseconds(
    72_000,
    'Longest time that an idle connection stays open; longer than that of a proxy.',
  ),
  SLOW_READER_TIMEOUT_MS: milliseconds(
    120_000,
    'Pause after which a client that reads nothing of a long answer is cut off, at twice that at the latest.',
  ),
  MAX_CONNECTIONS: whole(0, 1_000_000)(
    0,
    'Most client connections of a worker; 0: as files allow (operate.md).',
  ),
  EVENT_LOOP_MAX_DELAY_MS: whole(0, 60_000)(
    100,
    'Delay of a busy event loop at which requests get 503; 0: no limit (operate.md).',
  ),
  DRAIN_TIMEOUT_MS: milliseconds(
    undefined,
    'Longest time of the requests in flight at shutdown; without it, DATABASE_STATEMENT_TIMEOUT_MS and 5 s (operate.md).',
  ),
  DRAIN_DELAY_MS: whole(0, 600_000)(
    0,
    'Time at shutdown in which `/readyz` fails and all is served (operate.md).',
  ),
  BODY_LIMIT_BYTES: whole(1024, 104_857_600)(
    1_048_576,
    'Largest request body.',
  ),
  COMPRESSION: flag(
    true,
    'Compresses responses; `false` behind a proxy that does (decisions.md).',
  ),
  CORS_ORIGINS: origins(
    [],
    'Origins of browser frontends, separated by commas.',
  ),
  AUTH_FAILURES_PER_MINUTE: whole(0, 1_000_000)(
    100,
    'Wrong keys of an address before it gets 429; 0 for no limit.',
  ),
  IDEMPOTENCY_TTL_HOURS: whole(1, 720)(
    24,
    'Shortest time that an `Idempotency-Key` is kept (decisions.md).',
  ),
  GRAPHQL_INTROSPECTION: flag(
    true,
    'Lets clients read the schema, also at `/schema.graphql` (graphql.md).',
  ),
  GRAPHQL_MAX_TOKENS: whole(10, 100_000)(
    1000,
    'Most tokens of a document (graphql.md).',
  ),
  GRAPHQL_MAX_DEPTH: whole(1, 1000)(
    16,
    'Deepest nesting of an operation; introspection needs 15 (graphql.md).',
  ),
  GRAPHQL_MAX_ALIASES: whole(0, 10_000)(
    50,
    'Most aliases of an operation (graphql.md).',
  ),
  GRAPHQL_MAX_COST: whole(1, 1_000_000)(
    6000,
    'Highest cost: one per root field and possible item (graphql.md).',
  ),
  GRAPHQL_APQ: flag(false, 'Automatic persisted queries (graphql.md).'),
  SUBSCRIPTIONS_MAX: whole(0, 1_000_000)(
    2000,
    'Most subscriptions of each worker; 0 for none (live.md).',
  ),
  SUBSCRIPTIONS_PER_KEY: whole(0, 1_000_000)(
    100,
    'Most subscriptions of a key (live.md).',
  ),
  SUBSCRIPTION_LIFE_MS: milliseconds(
    3_600_000,
    'Longest subscription, within the limit of a proxy; then its client resumes it (live.md).',
  ),
} as const satisfies Record<string, Variable<unknown>>;

/**
 * The variables of the service, and those of modules and features. Neither can
 * redefine one of the service.
 */
export function allVariables(
  owners: readonly VariableOwner[],
): typeof coreVariables & Variables {
  const own = owners.map((one) => one.variables);
  // First for the order of the page, last so that none is redefined.
  return Object.assign({}, coreVariables, ...own, coreVariables);
}

/** The configuration, grouped by the parts of the service that use it. */
export type Config = ReturnType<typeof loadConfig>;

/**
 * Reads the configuration from the environment. Only this file contains the
 * names of variables. Pure.
 *
 * @param env an empty variable counts as absent
 * @param owners modules and features, with their variables
 * @param identity the service whose environment it is
 * @throws Error that lists every mistake.
 */
export function loadConfig(
  env: Record<string, string | undefined>,
  owners: readonly VariableOwner[] = [],
  {
    name,
    about,
    url,
    command = name,
    items = 'items',
    guides,
  }: Identity = engine,
) {
  if (!/^[a-z][a-z\d-]*$/.test(name))
    throw new Error(
      `The name of a service is like own-service, not "${name}".`,
    );
  const { folder, version, license } = manifestOf(url);
  const all = allVariables(owners);
  const values = readVariables(all, env);
  return {
    name,
    about,
    command,
    items,
    guides: guides && join(folder, guides),
    version,
    license,
    shown: withoutSecrets(all, values),
    misspelt: misspelt(Object.keys(env), Object.keys(all)),
    /** All values by name, for modules and features. */
    values,
    revision: values.REVISION,
    port: values.PORT,
    host: values.HOST,
    operations: { port: values.OPERATIONS_PORT, host: values.OPERATIONS_HOST },
    log: {
      level: values.LOG_LEVEL,
      format: values.LOG_FORMAT,
      sample: values.LOG_SAMPLE,
    },
    migrateOnStart: values.MIGRATE_ON_START,
    idempotencyHours: values.IDEMPOTENCY_TTL_HOURS,
    drainDelay: values.DRAIN_DELAY_MS,
    drainTimeout:
      values.DRAIN_TIMEOUT_MS ?? values.DATABASE_STATEMENT_TIMEOUT_MS + 5000,
    database: {
      // The `application_name` of sessions, and the name of the migration lock:
      // the same in all releases.
      name,
      url: values.DATABASE_URL,
      directUrl: values.DATABASE_DIRECT_URL,
      poolMax: values.DATABASE_POOL_MAX,
      connectTimeout: values.DATABASE_CONNECT_TIMEOUT_MS,
      statementTimeout: values.DATABASE_STATEMENT_TIMEOUT_MS,
      preparedStatements: values.DATABASE_PREPARED_STATEMENTS,
    },
    http: {
      trustProxy: values.TRUST_PROXY,
      requestTimeout: values.REQUEST_TIMEOUT_MS,
      keepAliveTimeout: values.KEEP_ALIVE_TIMEOUT_MS,
      slowReaderTimeout: values.SLOW_READER_TIMEOUT_MS,
      maxConnections: values.MAX_CONNECTIONS,
      maxLoopDelay: values.EVENT_LOOP_MAX_DELAY_MS,
      bodyLimit: values.BODY_LIMIT_BYTES,
      compression: values.COMPRESSION,
      corsOrigins: values.CORS_ORIGINS,
    },
    keys: {
      bootstrapKey: values.BOOTSTRAP_API_KEY,
      failuresPerMinute: values.AUTH_FAILURES_PER_MINUTE,
    },
    subscriptions: {
      max: values.SUBSCRIPTIONS_MAX,
      perKey: values.SUBSCRIPTIONS_PER_KEY,
      life: values.SUBSCRIPTION_LIFE_MS,
    },
    graphql: {
      introspection: values.GRAPHQL_INTROSPECTION,
      apq: values.GRAPHQL_APQ,
      limits: {
        maxTokens: values.GRAPHQL_MAX_TOKENS,
        maxDepth: values.GRAPHQL_MAX_DEPTH,
        maxAliases: values.GRAPHQL_MAX_ALIASES,
        maxCost: values.GRAPHQL_MAX_COST,
      },
    },
  };
}

/** The folder of this package, also for code in a bundle. */
export const engineFolder = fileURLToPath(
  new URL('.', import.meta.resolve('@animal-store/engine/package.json')),
);
const isPacked = existsSync(join(engineFolder, 'web'));
/** The folder with the pages: that of the package, or of this project. */
export const root = isPacked ? engineFolder : join(engineFolder, '../..');

/** @param url of a file of the package, also in a bundle */
export function manifestOf(url: string) {
  const path = findPackageJSON(url) as string;
  const { version, license } = JSON.parse(readFileSync(path, 'utf8'));
  return { folder: dirname(path), version, license } as {
    folder: string;
    version: string;
    /** An SPDX expression, or a word of npm's. */
    license?: string;
  };
}

/** The service that tests of a part have. */
const engine = {
  name: 'service',
  about: { title: 'Service', description: 'Serves modules.' },
  url: import.meta.url,
};

/**
 * The oldest supported Node.js. Not in package.json, because npm itself may run
 * on an older one.
 */
const oldest = 24;

/**
 * Keeps compiled code in the service's own folder: a start costs a quarter less.
 *
 * @throws Error when this Node.js is older
 */
export function prepareNode({ url }: Identity) {
  if (Number.parseInt(process.versions.node, 10) < oldest)
    throw new Error(
      `This is Node.js ${process.versions.node}, and ${oldest} or later is needed.`,
    );
  const { folder } = manifestOf(url);
  enableCompileCache(join(folder, 'node_modules/.cache/engine'));
}
