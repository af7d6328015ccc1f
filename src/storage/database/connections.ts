import { Socket } from 'node:net';
import type { MikroORM, PostgreSqlConnection } from '@mikro-orm/postgresql';
import { Client, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg';
import { type ConnectionOptions, parse, toClientConfig } from 'pg-connection-string';
import {
  type EmbeddedAddress,
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '../../../packages/embedded-postgres/src/postgres.ts';
import type { DatabaseOptions } from './options.ts';

/** Opens the embedded store in `dataDir`. One process owns it; the others are its guests, and one of them takes over. */
export async function openEmbedded(
  options: Pick<DatabaseOptions, 'dataDir' | 'prepared' | 'onLost' | 'log' | 'embedded'>,
): Promise<EmbeddedPostgres> {
  const { dataDir, prepared, onLost, log, embedded } = options;
  const store = await openEmbeddedPostgres(dataDir, { prepared, onLost, ...embedded });
  log?.info({ folder: dataDir, role: store.isOwner ? 'owner' : 'guest' }, 'embedded store opened');
  if (!store.isOwner) {
    void store.owned.then(() => log?.info({ folder: dataDir, role: 'owner' }, 'embedded store taken over'));
  }
  return store;
}

/** How to open sessions with one PostgreSQL. */
export interface Sessions {
  readonly config: ClientConfig;
  /** True when prepared statements survive: false behind a pooler that gives every transaction another session. */
  readonly keepStatements: boolean;
  /** What an operator should run when sessions have other settings than ours: a pooler drops them. */
  readonly advice?: string[] | undefined;
  /** Finds out how, as long as that is unknown. */
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
 * Opens a session to find out what works. Poolers refuse settings for a session, or drop them silently, and few keep
 * prepared statements. A server may have no TLS, which `sslmode=prefer` accepts.
 *
 * @throws the driver's error when no session can be opened
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

/**
 * The connection pool of an ORM. MikroORM never releases a connection that breaks in a transaction, because the
 * rollback fails first (https://github.com/kysely-org/kysely/issues/1990). The pool would stay one connection short,
 * and closing it would wait for that connection.
 */
export async function poolOf(orm: MikroORM): Promise<Pool> {
  const pool = await (orm.em.getConnection() as PostgreSqlConnection).getNativeClient();
  // Code that does release it has done so by the next turn of the event loop.
  pool.on('connect', (client) => client.once('end', () => setImmediate(giveBack, client)));
  return pool;
}

/** A pool without an ORM. */
export function poolWith(config: PoolConfig): Pool {
  const pool = new Pool(config);
  // A connection that breaks is replaced; its user gets the error from the statement.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** MikroORM ends the pool only if one of its entity managers has used it. */
export async function endPool(orm: MikroORM, pool: Pool): Promise<void> {
  await orm.close(true);
  if (!pool.ending) await pool.end();
}

function giveBack(client: PoolClient): void {
  try {
    client.release(true);
  } catch {
    // It was released already.
  }
}
