import { Socket } from 'node:net';
import { Client, type ClientConfig } from 'pg';
import {
  type ConnectionOptions,
  parse,
  toClientConfig,
} from 'pg-connection-string';
import type { DatabaseOptions } from './options.ts';
import { sqlState } from './postgres-errors.ts';

const settingsDropped = 'a pooler drops session settings: set them on the role';

/**
 * How to open sessions with one PostgreSQL server. Assumes that there is no
 * pooler, until the first session shows it.
 */
export class Sessions {
  config: ClientConfig;
  /**
   * False behind a pooler in transaction mode: prepared statements do not
   * survive there.
   */
  keepStatements: boolean;
  /** Where tables are created; undefined before `detect`. */
  schema: string | undefined;
  #detected: Promise<ClientConfig> | undefined;

  /** @throws Error for an invalid address */
  constructor(private readonly options: DatabaseOptions) {
    this.config = configFor(options);
    this.keepStatements = options.preparedStatements !== 'false';
  }

  /**
   * Detects these settings once.
   *
   * @throws the driver's error when no session can be opened
   */
  detect() {
    this.#detected ??= this.#detect().catch((error) => {
      this.#detected = undefined;
      throw error;
    });
    return this.#detected;
  }

  /**
   * Opens a session to detect which settings work. Poolers reject session
   * settings or drop them silently, and few keep prepared statements. A server
   * may lack TLS, which `sslmode=prefer` accepts.
   */
  async #detect() {
    const { options } = this;
    const setsPath = /search_path/i.test(`${this.config.options}`);
    let { config } = this;
    for (;;) {
      try {
        const found = await inspectSession(config, options);
        const isPathKept = /^(?:client|session)$/.test(found.pathSource);
        if (setsPath && !isPathKept) throw new Error(pathDropped);
        if (options.preparedStatements === 'auto')
          this.keepStatements = !found.isPooled;
        this.config = config;
        this.schema = found.schema;
        return config;
      } catch (error) {
        const other = fallbackFor(config, error as Error, options);
        if (!other) throw error;
        config = other;
      }
    }
  }
}

/** PostgreSQL's own defaults. */
const texts =
  '-c extra_float_digits=1 -c datestyle=ISO -c intervalstyle=postgres -c bytea_output=hex';

const timeouts = ['statement_timeout', 'idle_in_transaction_session_timeout'];

function configFor(wanted: DatabaseOptions): ClientConfig {
  const { url, name, connectTimeout, statementTimeout } = wanted;
  const { statement_timeout, query_timeout, ...given } = parsedUrl(url);
  const { options = '' } = given;
  const config = toClientConfig(given as ConnectionOptions);
  const limits = timeouts.map((one) => `-c ${one}=${statementTimeout}`);
  // Without this, pg would check the certificate of an IP address for
  // `localhost`.
  if (typeof config.ssl === 'object')
    Object.assign(config.ssl, { host: config.host });
  return {
    ...config,
    // These change the texts of values for SQL of modules; the service's own
    // does not depend on them, because a pooler may drop them.
    // The timeouts are set, because the role may have its own; the second one
    // ends a transaction whose process is frozen or unreachable. JIT is off,
    // because PostgreSQL would compile the batched list again at every
    // execution: tens of milliseconds for a statement that takes one.
    options: [options, texts, ...limits, '-c jit=off'].join(' ').trim(),
    application_name: name,
    connectionTimeoutMillis: connectTimeout,
    keepAlive: true,
    stream: () => socketWithTimeout(statementTimeout),
  };
}

function parsedUrl(url = '') {
  try {
    return parse(readLikeLibpq(url), { useLibpqCompat: true });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (!code) throw cause;
    throw new Error(
      `sslrootcert, sslcert or sslkey of a database address cannot be read: ${message}`,
      { cause },
    );
  }
}

function fallbackFor(
  config: ClientConfig,
  error: Error,
  { url = '' }: DatabaseOptions,
) {
  // A pooler rejects the startup parameter.
  if (config.options && /^(?:08P01|0A000)$/.test(`${sqlState(error)}`))
    return { ...config, options: undefined };
  const isPreferred = readLikeLibpq(url).includes('sslmode=prefer');
  if (config.ssl && isPreferred && /does not support SSL/.test(error.message))
    return { ...config, ssl: false };
  return undefined;
}

const pathDropped =
  'The pooler drops the search_path of the database address. Set it on the role: `alter role ... set search_path = ...`.';

/** Reads the settings that are in force, and whether a pooler shares it. */
async function inspectSession(
  config: ClientConfig,
  { statementTimeout, advice, log }: DatabaseOptions,
) {
  const client = new Client(config);
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(settings);
    const { pid, role, limits, jit, dateStyle, pathSource, schema } = rows[0];
    const set = `alter role ${role} set`;
    const statements: string[] = [];
    for (const [name, limit] of Object.entries<number>(limits))
      if (limit === 0 || limit > statementTimeout)
        statements.push(`${set} ${name} = ${statementTimeout}`);
    if (!dateStyle.startsWith('ISO')) statements.push(`${set} datestyle = ISO`);
    if (jit !== 'off') statements.push(`${set} jit = off`);
    const isAdvised = advice !== undefined && statements.length > 0;
    if (isAdvised) log?.warn({ ...advice, statements }, settingsDropped);
    // A pooler that shares sessions gives its clients other process ids, to
    // know whose query to cancel.
    const { processID } = client as unknown as { processID: number | null };
    return { isPooled: processID !== pid, schema, pathSource };
  } finally {
    await client.end();
  }
}

const settings = `
  select pg_backend_pid() as pid,
    quote_ident(current_user) as role,
    current_setting('jit', true) as jit,
    current_setting('datestyle') as "dateStyle",
    current_schema() as schema,
    (select json_object_agg(name, setting::int) from pg_settings
      where name in ('${timeouts.join("', '")}')) as limits,
    (select source from pg_settings
      where name = 'search_path') as "pathSource"`;

/**
 * Interprets `sslmode` and `sslrootcert` as libpq does (PostgreSQL's manual,
 * section 34.19), with exceptions: without both there is no TLS, `allow` is
 * `prefer`, `no-verify` is `require`, `system` means Node's authorities.
 */
function readLikeLibpq(url: string) {
  const read = new URL(url);
  const { searchParams: parameters } = read;
  parameters.delete('uselibpqcompat');
  const mode = parameters.get('sslmode');
  if (parameters.get('sslrootcert') === 'system') {
    parameters.delete('sslrootcert');
    parameters.set('sslmode', 'verify-full');
  } else if (mode === 'allow' || (!mode && parameters.has('sslrootcert')))
    parameters.set('sslmode', 'prefer');
  else if (mode === 'no-verify') parameters.set('sslmode', 'require');
  return read.href;
}

/**
 * PostgreSQL cancels slow statements itself. This timeout detects a server or a
 * network that stopped responding. It is set on the socket because pg's
 * `query_timeout` starts a timer per query, which costs as much as a small
 * query and keeps the result from the garbage collector (`bench/README.md`).
 */
function socketWithTimeout(statementTimeout: number) {
  const socket = new Socket();
  const silence = Object.assign(new Error('PostgreSQL stopped responding'), {
    code: 'ETIMEDOUT',
  });
  if (statementTimeout > 0)
    socket.setTimeout(statementTimeout + 1000, () => socket.destroy(silence));
  return socket;
}
