import { bool, cleanEnv, port, str } from 'envalid';
import {
  milliseconds,
  origins,
  postgresUrl,
  postgresUrls,
  processes,
  proxies,
  redisUrl,
  secret,
  share,
  wholeNumber,
  withoutSecrets,
} from './config.checks.ts';

/** Thrown for an invalid configuration. The message lists every mistake. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const none = undefined as string | undefined;

/** Every variable: its type, its default and its meaning. */
export const variables = {
  PORT: port({ default: 4000, desc: 'TCP port to listen on.' }),
  HOST: str({ default: '127.0.0.1', desc: 'Address to listen on; `0.0.0.0` or `::` for all.' }),
  OPERATIONS_PORT: wholeNumber(0, 65_535, {
    default: 0,
    desc: 'TCP port for operators: `/metrics`, `/log`. It needs no key; 0 for none.',
  }),
  OPERATIONS_HOST: str({ default: '127.0.0.1', desc: 'Address of that port.' }),
  WORKERS: processes({ default: 1 as number | 'auto', desc: 'Processes that serve; `auto` for one per core.' }),
  DATABASE_URL: postgresUrl({ default: none, desc: 'PostgreSQL; without it, the embedded store.' }),
  DATABASE_DIRECT_URL: postgresUrl({
    default: none,
    desc: 'The same database past a pooler, for migrations; without it, `DATABASE_URL`.',
  }),
  DATA_DIR: str({ default: '.data', desc: 'Folder of the embedded store.' }),
  DATABASE_POOL_MAX: wholeNumber(2, 1000, { default: 10, desc: 'Connections to PostgreSQL at most, of each worker.' }),
  DATABASE_CONNECT_TIMEOUT_MS: milliseconds({ default: 5000, desc: 'Until a connection to PostgreSQL must stand.' }),
  DATABASE_STATEMENT_TIMEOUT_MS: milliseconds({ default: 10_000, desc: 'Until PostgreSQL gives up a statement.' }),
  DATABASE_PREPARED_STATEMENTS: str({
    choices: ['auto', 'true', 'false'],
    default: 'auto',
    desc: 'Whether statements are prepared once per session; `auto`: not behind a pooler.',
  }),
  DATABASE_READ_URLS: postgresUrls({
    default: undefined as string[] | undefined,
    desc: 'PostgreSQLs that answer reads, separated by commas: replicas, or nodes of Citus.',
  }),
  READ_MAX_LAG_MS: wholeNumber(1000, 3_600_000, {
    default: 1000,
    desc: 'How far a replica may be behind and still answer.',
  }),
  MIGRATE_ON_START: bool({ default: true, desc: 'Apply pending migrations at start.' }),
  BOOTSTRAP_API_KEY: secret({ default: none, desc: 'An API key that is valid as long as this is set.' }),
  LOG_LEVEL: str({
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    desc: 'How much is logged.',
  }),
  LOG_SAMPLE: share({ default: 1, desc: 'Share of the requests without a fault that get a line, 0 to 1.' }),
  TRUST_PROXY: proxies({
    default: false as false | number | string[],
    desc: 'Proxies whose `X-Forwarded-*` count: addresses and networks, or a number of hops.',
  }),
  REQUEST_TIMEOUT_MS: milliseconds({ default: 30_000, desc: 'Until a request must have arrived whole.' }),
  KEEP_ALIVE_TIMEOUT_MS: milliseconds({ default: 72_000, desc: 'How long an idle connection stays open.' }),
  MAX_CONNECTIONS: wholeNumber(0, 1_000_000, {
    default: 0,
    desc: 'Connections of clients at a time, to each worker; 0 for as many as there are file descriptors for, up to 10000.',
  }),
  DRAIN_TIMEOUT_MS: milliseconds({ default: 10_000, desc: 'How long requests in flight may take at shutdown.' }),
  DRAIN_DELAY_MS: wholeNumber(0, 600_000, {
    default: 0,
    desc: 'How long all is still served at shutdown, while `/readyz` sends proxies elsewhere.',
  }),
  BODY_LIMIT_BYTES: wholeNumber(1024, 104_857_600, { default: 1_048_576, desc: 'Largest request body.' }),
  COMPRESSION: bool({
    default: true,
    desc: 'Whether answers are compressed for clients that ask for it; `false` behind a proxy that does it.',
  }),
  CORS_ORIGINS: origins({ default: [] as string[], desc: 'Origins of browser frontends, separated by commas.' }),
  AUTH_FAILURES_PER_MINUTE: wholeNumber(0, 1_000_000, {
    default: 100,
    desc: 'Wrong keys per client address until it gets 429; 0 for no limit.',
  }),
  IDEMPOTENCY_TTL_HOURS: wholeNumber(1, 720, {
    default: 24,
    desc: 'How long a creation is known by its `Idempotency-Key`, at least.',
  }),
  QUOTA_PER_MINUTE: wholeNumber(0, 1_000_000_000, {
    default: 0,
    desc: 'Units per key: one per operation and one per item read or written; 0 for no quota.',
  }),
  REDIS_URL: redisUrl({ default: none, desc: 'Redis, where several nodes share the quotas.' }),
  GRAPHQL_INTROSPECTION: bool({
    default: true,
    desc: 'Whether clients may read the schema: with a key through `/graphql`, and at `/schema.graphql`.',
  }),
  EXPLORER: bool({
    default: true,
    desc: 'Whether browsers get Apollo Sandbox at `/graphql`, and GraphiQL at `/graphiql`.',
  }),
  GRAPHQL_JIT: bool({
    default: true,
    desc: 'Compile operations; `false` interprets them, slower, to the same effect.',
  }),
  GRAPHQL_MAX_TOKENS: wholeNumber(10, 100_000, { default: 1000, desc: 'Tokens of a document.' }),
  GRAPHQL_MAX_DEPTH: wholeNumber(1, 1000, { default: 16, desc: 'Nesting of an operation; introspection needs 15.' }),
  GRAPHQL_MAX_ALIASES: wholeNumber(0, 10_000, { default: 50, desc: 'Aliases of an operation.' }),
  GRAPHQL_MAX_ROOT_FIELDS: wholeNumber(1, 10_000, { default: 50, desc: 'Root fields of an operation.' }),
  GRAPHQL_MAX_DIRECTIVES: wholeNumber(0, 10_000, { default: 50, desc: 'Directives of an operation.' }),
  GRAPHQL_MAX_COST: wholeNumber(1, 1_000_000, {
    default: 6000,
    desc: 'Cost of an operation: one per root field and one per item that it may answer.',
  }),
  GRAPHQL_APQ: bool({ default: false, desc: 'Automatic persisted queries.' }),
  SUBSCRIPTIONS_MAX: wholeNumber(0, 1_000_000, {
    default: 2000,
    desc: 'Subscriptions at a time, in each worker; 0 for none.',
  }),
  SUBSCRIPTIONS_PER_KEY: wholeNumber(0, 1_000_000, { default: 100, desc: 'The same of one key.' }),
  SUBSCRIPTION_LIFE_MS: milliseconds({
    default: 3_600_000,
    desc: 'How long a subscription lasts; then its client resumes it.',
  }),
  TRUSTED_DOCUMENTS: str({ default: none, desc: 'Manifest of the only operations that may be run.' }),
} as const;

/** The configuration, grouped by the parts of the service that use it. */
export type Config = ReturnType<typeof loadConfig>;

/**
 * Reads the configuration from the environment. This file is the only place that knows the names of variables. Pure.
 *
 * @param env `process.env`, or values of a test. An empty variable counts as absent.
 * @throws ConfigError that lists every mistake.
 */
export function loadConfig(env: Record<string, string | undefined>) {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const values = cleanEnv(given, variables, {
    reporter: ({ errors }) => {
      const mistakes = Object.entries(errors).map(([name, error]) => `  ${name} ${error?.message}`);
      for (const name of ['DATABASE_DIRECT_URL', 'DATABASE_READ_URLS']) {
        if (given[name] && !given.DATABASE_URL) mistakes.push(`  ${name} is of no use without DATABASE_URL`);
      }
      if (mistakes.length > 0) throw new ConfigError(`The configuration cannot be used:\n${mistakes.join('\n')}`);
    },
  });
  return {
    shown: withoutSecrets(values),
    port: values.PORT,
    host: values.HOST,
    operations: { port: values.OPERATIONS_PORT, host: values.OPERATIONS_HOST },
    workers: values.WORKERS,
    log: { level: values.LOG_LEVEL, sample: values.LOG_SAMPLE },
    migrateOnStart: values.MIGRATE_ON_START,
    idempotencyHours: values.IDEMPOTENCY_TTL_HOURS,
    drainDelay: values.DRAIN_DELAY_MS,
    drainTimeout: values.DRAIN_TIMEOUT_MS,
    database: {
      url: values.DATABASE_URL,
      directUrl: values.DATABASE_DIRECT_URL,
      dataDir: values.DATA_DIR,
      poolMax: values.DATABASE_POOL_MAX,
      connectTimeout: values.DATABASE_CONNECT_TIMEOUT_MS,
      statementTimeout: values.DATABASE_STATEMENT_TIMEOUT_MS,
      preparedStatements: values.DATABASE_PREPARED_STATEMENTS as 'auto' | 'true' | 'false',
      readUrls: values.DATABASE_READ_URLS,
      readMaxLag: values.READ_MAX_LAG_MS,
      // One page fits into a response, and many pages fit into memory.
    },
    http: {
      trustProxy: values.TRUST_PROXY,
      requestTimeout: values.REQUEST_TIMEOUT_MS,
      keepAliveTimeout: values.KEEP_ALIVE_TIMEOUT_MS,
      maxConnections: values.MAX_CONNECTIONS,
      bodyLimit: values.BODY_LIMIT_BYTES,
      compression: values.COMPRESSION,
      corsOrigins: values.CORS_ORIGINS,
    },
    keys: {
      bootstrapKey: values.BOOTSTRAP_API_KEY,
      failuresPerMinute: values.AUTH_FAILURES_PER_MINUTE,
      quotaPerMinute: values.QUOTA_PER_MINUTE,
      redisUrl: values.REDIS_URL,
    },
    subscriptions: {
      max: values.SUBSCRIPTIONS_MAX,
      perKey: values.SUBSCRIPTIONS_PER_KEY,
      life: values.SUBSCRIPTION_LIFE_MS,
    },
    graphql: {
      introspection: values.GRAPHQL_INTROSPECTION,
      explorer: values.EXPLORER,
      jit: values.GRAPHQL_JIT,
      apq: values.GRAPHQL_APQ,
      trustedDocuments: values.TRUSTED_DOCUMENTS,
      limits: {
        maxTokens: values.GRAPHQL_MAX_TOKENS,
        maxDepth: values.GRAPHQL_MAX_DEPTH,
        maxAliases: values.GRAPHQL_MAX_ALIASES,
        maxRootFields: values.GRAPHQL_MAX_ROOT_FIELDS,
        maxDirectives: values.GRAPHQL_MAX_DIRECTIVES,
        maxCost: values.GRAPHQL_MAX_COST,
      },
    },
  };
}
