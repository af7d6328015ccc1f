import { bool, cleanEnv, EnvError, makeValidator, port, str } from 'envalid';

/** A configuration that cannot be used; the message lists every mistake. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const wholeNumber = (min: number, max: number) =>
  makeValidator((text: string) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new EnvError(`must be a whole number between ${min} and ${max}, not "${text}"`);
    }
    return value;
  });
const milliseconds = wholeNumber(1, 86_400_000);
const none = undefined as string | undefined;

const postgresUrl = makeValidator((text: string) => {
  if (!URL.canParse(text) || !/^postgres(?:ql)?:$/.test(new URL(text).protocol)) {
    throw new EnvError('must be a postgres:// address');
  }
  return text;
});

const secret = makeValidator((text: string) => {
  if (!/^[A-Za-z0-9\-._~+/]{20,}=*$/.test(text)) {
    throw new EnvError('must be at least 20 letters, digits or -._~+/ (RFC 6750), hard to guess');
  }
  return text;
});

const origins = makeValidator((text: string) => {
  const list = text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
  for (const one of list) {
    if (!URL.canParse(one) || new URL(one).origin !== one) {
      throw new EnvError(`must be origins like https://shop.example, separated by commas, not "${one}"`);
    }
  }
  return list;
});

const specs = {
  PORT: port({ default: 4000, desc: 'TCP port to listen on.' }),
  HOST: str({ default: '127.0.0.1', desc: 'Address to listen on; `0.0.0.0` or `::` for all.' }),
  DATABASE_URL: postgresUrl({
    default: none,
    desc: 'PostgreSQL, `postgres://user:password@host/database`. Without it, the embedded store.',
  }),
  DATA_DIR: str({ default: '.data', desc: 'Folder of the embedded store.' }),
  DATABASE_POOL_MAX: wholeNumber(2, 1000)({ default: 10, desc: 'Connections to PostgreSQL at most.' }),
  DATABASE_CONNECT_TIMEOUT_MS: milliseconds({ default: 5000, desc: 'Until a connection to PostgreSQL must stand.' }),
  DATABASE_STATEMENT_TIMEOUT_MS: milliseconds({ default: 10_000, desc: 'Until PostgreSQL gives up a statement.' }),
  MIGRATE_ON_START: bool({ default: true, desc: 'Apply pending migrations at start.' }),
  BOOTSTRAP_API_KEY: secret({
    default: none,
    desc: 'An API key that is valid as long as this is set; at least 20 characters.',
  }),
  LOG_LEVEL: str({
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    desc: 'How much is logged.',
  }),
  REQUEST_TIMEOUT_MS: milliseconds({ default: 30_000, desc: 'Until a request must have arrived whole.' }),
  KEEP_ALIVE_TIMEOUT_MS: milliseconds({ default: 72_000, desc: 'How long an idle connection stays open.' }),
  DRAIN_TIMEOUT_MS: milliseconds({ default: 10_000, desc: 'How long requests in flight may take at shutdown.' }),
  BODY_LIMIT_BYTES: wholeNumber(1024, 104_857_600)({ default: 1_048_576, desc: 'Largest request body.' }),
  CORS_ORIGINS: origins({ default: [] as string[], desc: 'Origins of browser frontends, separated by commas.' }),
  GRAPHQL_JIT: bool({
    default: true,
    desc: 'Compile GraphQL operations; `false` interprets them, more slowly and to the same effect.',
  }),
} as const;

export interface Config {
  port: number;
  host: string;
  logLevel: string;
  bootstrapApiKey: string | undefined;
  migrateOnStart: boolean;
  drainTimeout: number;
  database: {
    url: string | undefined;
    dataDir: string;
    poolMax: number;
    connectTimeout: number;
    statementTimeout: number;
  };
  http: { requestTimeout: number; keepAliveTimeout: number; bodyLimit: number; corsOrigins: string[] };
  graphql: { jit: boolean };
}

/**
 * Reads the configuration from the environment; the only place that knows the names of variables. Pure.
 *
 * @param env `process.env`, or what a test likes. An empty variable counts as absent.
 * @throws ConfigError that lists every mistake.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const values = cleanEnv(given, specs, {
    reporter: ({ errors }) => {
      const mistakes = Object.entries(errors).map(([name, error]) => `  ${name} ${error?.message}`);
      if (mistakes.length > 0) throw new ConfigError(`The configuration cannot be used:\n${mistakes.join('\n')}`);
    },
  });
  return {
    port: values.PORT,
    host: values.HOST,
    logLevel: values.LOG_LEVEL,
    bootstrapApiKey: values.BOOTSTRAP_API_KEY,
    migrateOnStart: values.MIGRATE_ON_START,
    drainTimeout: values.DRAIN_TIMEOUT_MS,
    database: {
      url: values.DATABASE_URL,
      dataDir: values.DATA_DIR,
      poolMax: values.DATABASE_POOL_MAX,
      connectTimeout: values.DATABASE_CONNECT_TIMEOUT_MS,
      statementTimeout: values.DATABASE_STATEMENT_TIMEOUT_MS,
    },
    http: {
      requestTimeout: values.REQUEST_TIMEOUT_MS,
      keepAliveTimeout: values.KEEP_ALIVE_TIMEOUT_MS,
      bodyLimit: values.BODY_LIMIT_BYTES,
      corsOrigins: values.CORS_ORIGINS,
    },
    graphql: { jit: values.GRAPHQL_JIT },
  };
}
