import { Socket } from 'node:net';
import { Client, type ClientConfig } from 'pg';
import { type ConnectionOptions, parse, toClientConfig } from 'pg-connection-string';
import type { EmbeddedAddress } from './embedded.ts';
import type { DatabaseOptions } from './options.ts';

/** How to open sessions with one PostgreSQL. */
export interface Sessions {
  readonly config: ClientConfig;
  /** True when prepared statements survive: false behind a pooler that gives every transaction another session. */
  readonly keepStatements: boolean;
  /** What an operator should run when sessions have other settings than ours: a pooler drops them. */
  readonly advice?: string[] | undefined;
  /** Finds out how, as long as nobody could. */
  readonly find?: (() => Promise<Sessions>) | undefined;
}

type Limits = Pick<DatabaseOptions, 'connectTimeout' | 'statementTimeout' | 'preparedStatements'>;

/**
 * Sessions with the database of the service.
 *
 * @throws Error for an address that cannot be used
 */
export async function sessionsFor(options: DatabaseOptions, embedded?: EmbeddedAddress): Promise<Sessions> {
  if (embedded) {
    const { host, port, user, database } = embedded;
    // Said, because PGPORT and PGSSLMODE are about another server.
    const config = { host, port, user, database, ssl: false, ...common(options) };
    // All of them share one backend, where names of prepared statements would collide.
    return { config, keepStatements: false };
  }
  const url = options.url ?? '';
  const plain = sessionsTo(url, options);
  const find = () => findSessions(url, options);
  return options.connects === false ? { ...plain, find } : find().catch(() => ({ ...plain, find }));
}

/** As if there were no pooler. @throws Error for an address that cannot be used */
export function sessionsTo(url: string, limits: Limits): Sessions {
  return { config: configFor(url, limits), keepStatements: limits.preparedStatements !== 'false' };
}

/**
 * Poolers refuse settings for a session, or lose them without a word, and few keep prepared statements; and a server
 * may have no TLS, which `sslmode=prefer` puts up with. It is found out by opening a session.
 *
 * @throws the driver's error when there is none to be had
 */
export async function findSessions(url: string, limits: Limits): Promise<Sessions> {
  const { preparedStatements = 'auto' } = limits;
  let config = configFor(url, limits);
  for (;;) {
    try {
      const { isPooled, advice } = await look(config, limits);
      const keepStatements = preparedStatements === 'auto' ? !isPooled : preparedStatements === 'true';
      return { config, keepStatements, advice };
    } catch (error) {
      const other = anotherWay(config, error as Error, url);
      if (!other) throw error;
      config = other;
    }
  }
}

function configFor(url: string, limits: Limits): ClientConfig {
  const { options = '', statement_timeout, query_timeout, ...rest } = parsed(url);
  const config = toClientConfig(rest as ConnectionOptions);
  // Given an address instead of a name, pg would look for `localhost` in the certificate.
  if (typeof config.ssl === 'object') Object.assign(config.ssl, { host: config.host });
  return {
    ...config,
    // The timeout is always set, because the role may have its own. JIT is off, because PostgreSQL would compile the
    // batched list again at every execution: tens of milliseconds for a statement that takes one.
    options: `${options} -c statement_timeout=${limits.statementTimeout} -c jit=off`.trim(),
    ...common(limits),
  };
}

function parsed(url: string): ConnectionOptions & { [parameter: string]: unknown } {
  try {
    return parse(asLibpqReads(url), { useLibpqCompat: true });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (!code) throw cause;
    throw new Error(`sslrootcert, sslcert or sslkey of a database address cannot be read: ${message}`, { cause });
  }
}

function common({ connectTimeout, statementTimeout }: Limits): ClientConfig {
  return {
    application_name: 'animal-store',
    connectionTimeoutMillis: connectTimeout,
    keepAlive: true,
    stream: () => socketThatMustAnswer(statementTimeout),
  };
}

function anotherWay(config: ClientConfig, { message }: Error, url: string): ClientConfig | undefined {
  if (config.options && /unsupported startup parameter/.test(message)) return { ...config, options: undefined };
  const isPreferred = asLibpqReads(url).includes('sslmode=prefer');
  if (config.ssl && isPreferred && /does not support SSL/.test(message)) return { ...config, ssl: false };
  return undefined;
}

async function look(
  config: ClientConfig,
  { statementTimeout }: Limits,
): Promise<{ isPooled: boolean } & Pick<Sessions, 'advice'>> {
  const client = new Client(config);
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query({ text: settings, rowMode: 'array' });
    const [pid, role, timeout, jit] = rows[0] as [number, string, string, string];
    const isBounded = Number(timeout) > 0 && Number(timeout) <= statementTimeout;
    const advice = [
      ...(isBounded || statementTimeout === 0
        ? []
        : [`alter role ${role} set statement_timeout = ${statementTimeout}`]),
      ...(jit === 'off' ? [] : [`alter role ${role} set jit = off`]),
    ];
    // A pooler that shares sessions must give its clients process ids of its own, to know whose query to cancel.
    const isPooled = (client as unknown as { processID: number | null }).processID !== pid;
    return { isPooled, advice: advice.length > 0 ? advice : undefined };
  } finally {
    await client.end();
  }
}

const settings = `
  select pg_backend_pid(), quote_ident(current_user),
    (select setting from pg_settings where name = 'statement_timeout'), current_setting('jit', true)`;

/**
 * `sslmode` and `sslrootcert` as libpq reads them (PostgreSQL's manual, section 34.19), but for `allow`, which tries TLS
 * first, like `prefer`, and `system`, which stands for the authorities that Node knows.
 */
function asLibpqReads(url: string): string {
  const read = new URL(url);
  const { searchParams: parameters } = read;
  parameters.delete('uselibpqcompat');
  const mode = parameters.get('sslmode');
  if (parameters.get('sslrootcert') === 'system') {
    parameters.delete('sslrootcert');
    parameters.set('sslmode', 'verify-full');
  } else if (mode === 'allow' || (!mode && parameters.has('sslrootcert'))) parameters.set('sslmode', 'prefer');
  else if (mode === 'no-verify') parameters.set('sslmode', 'require');
  return read.href;
}

/**
 * PostgreSQL cancels slow statements itself; this timeout is for a server or a network that has fallen silent. It is
 * set on the socket because pg's own `query_timeout` is a timer for every query: that costs as much as a small query,
 * and keeps the result from the garbage collector (`bench/README.md`).
 */
function socketThatMustAnswer(statementTimeout: number): Socket {
  const socket = new Socket();
  const silence = Object.assign(new Error('PostgreSQL does not answer any more'), { code: 'ETIMEDOUT' });
  if (statementTimeout > 0) socket.setTimeout(statementTimeout + 1000, () => socket.destroy(silence));
  return socket;
}
