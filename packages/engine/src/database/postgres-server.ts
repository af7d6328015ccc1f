import { hash } from 'node:crypto';
import { type EventLog, Incident } from '@animal-store/log/incident';
import type { MikroORM } from '@mikro-orm/postgresql';
import {
  Pool,
  type PoolClient,
  type PoolConfig,
  type QueryArrayConfig,
  type QueryConfig,
  type QueryResult,
} from 'pg';
import { Unavailable } from '../errors.ts';
import { retry } from '../retry.ts';
import {
  causeOf,
  codeOf,
  isConflict,
  isConnectionLoss,
  isStalePlan,
  keepsSessionUsable,
  leavesOutcomeUnknown,
  sqlState,
  unavailable,
} from './postgres-errors.ts';
import type { Sessions } from './sessions.ts';
import { isOvertaken } from './through.ts';

/** A statement that is prepared once per connection. */
export interface Statement {
  /** PostgreSQL's log shows it. Several statements may have one name. */
  readonly name: string;
  readonly text: string;
  /**
   * True for a write that must not be repeated: a lost connection leaves its
   * outcome unknown.
   */
  readonly isWrite?: boolean;
  /** True for one that is not prepared, because there are too many. */
  readonly isRare?: boolean;
}

/**
 * Rows as arrays in the order of the columns. Every value is the text that
 * PostgreSQL sends, or null.
 */
export type Rows = Array<Array<string | null>>;

export type RunStatement = (
  statement: Statement,
  values: unknown[],
) => Promise<Rows>;

/**
 * A connection pool at this moment: its connections, and how many statements
 * wait for one.
 */
export type PoolState = ReturnType<PostgresServer['state']>;

/**
 * Maximum number of retries after a conflict, and the average length (ms) of
 * the first pause.
 */
const retries = 3;
const conflictPause = 20;
/** How long (ms) a statement waits for a connection before that is reported. */
const exhaustedAfter = 1000;
/**
 * Longer than the usual statement timeout of ten seconds, because other
 * statements succeed between two timeouts.
 */
const quietAfterFailures = 15_000;

/** One PostgreSQL server. The statements of all requests are sent from here. */
export class PostgresServer {
  /**
   * Called before a write is acknowledged. `session` runs further statements on
   * the connection that wrote; the connection is released when the promise
   * settles. There is no `session` when the outcome of the write is unknown.
   */
  onWrite: ((session: RunStatement | undefined) => Promise<void>) | undefined;
  #isDetected = false;
  /** The connections that may be reused. */
  readonly #usable = new Set<PoolClient>();
  /**
   * False until the first answer: before that, the failing start reports the
   * error.
   */
  #hasAnswered = false;
  readonly #incidents: ReturnType<typeof incidentsIn>;

  constructor(
    readonly pool: Pool,
    private readonly sessions: Sessions,
    private readonly log?: EventLog,
  ) {
    this.#incidents = incidentsIn(log);
    pool.on('connect', (client) => {
      this.#usable.add(client);
      client.once('end', () => this.#usable.delete(client));
    });
  }

  /**
   * Runs one statement in any session, and retries it after a conflict.
   *
   * @throws Unavailable when PostgreSQL is unreachable or takes too
   *   long; else the driver's error
   */
  readonly rows = <Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
  ) =>
    retry(
      () =>
        this.#inSession(
          (client) => this.#query(client, statement, values) as Promise<Row[]>,
          statement.isWrite,
        ),
      afterConflict,
    );

  /**
   * Sends one query that reads, in any session.
   *
   * @throws as `rows` does
   */
  readonly send: Send = (query) =>
    this.#inSession((client) => this.#send(client, query), false);

  /**
   * Runs work in a transaction, and again after a conflict, or when it was
   * overtaken (`through.ts`).
   *
   * @throws what the work throws; else as `rows` does
   */
  inTransaction<T>(work: (send: Send) => Promise<T>): Promise<T> {
    const transact = async (client: PoolClient) => {
      const send: Send = (query) => this.#send(client, query);
      await send({ text: 'begin isolation level read committed' });
      const result = await work(send).catch(async (error) => {
        if (keepsSessionUsable(error)) await send({ text: 'rollback' });
        throw error;
      });
      // Without it the outcome is known.
      await this.#send(client, { text: 'commit' }, true);
      return result;
    };
    return retry(
      () => this.#inSession(transact, true),
      (error, attempt) =>
        afterConflict(error, attempt, isOvertaken(causeOf(error))),
    );
  }

  /**
   * Runs statements in one session, in order; in one round trip where the
   * session pipelines. Only a single one writes.
   *
   * @throws as `rows` does
   */
  inOneSession(...queries: Array<Parameters<RunStatement>>) {
    const work = (client: PoolClient) =>
      Promise.all(queries.map((query) => this.#query(client, ...query)));
    return this.#inSession(work, queries[0]?.[0].isWrite);
  }

  /** After a failure the connection is closed, except after a refusal. */
  async #inSession<T>(
    work: (client: PoolClient) => Promise<T>,
    isWrite: boolean | undefined,
  ): Promise<T> {
    const client = await this.#connect();
    let failure: unknown;
    let afterwards: Promise<void> | undefined;
    try {
      const result = await work(client);
      this.#answered();
      if (isWrite)
        afterwards = this.onWrite?.((...query) =>
          this.#query(client, ...query),
        );
      return result;
    } catch (error) {
      failure = keepsSessionUsable(error) ? undefined : error;
      throw error;
    } finally {
      if (afterwards) void afterwards.then(() => releaseOnce(client, failure));
      else releaseOnce(client, failure);
    }
  }

  /**
   * Sends a statement. When its prepared form is stale (a column changed its
   * type) or unknown (another session prepared it), it has not run and is sent
   * once more without its name.
   */
  async #query(
    client: PoolClient,
    { name, text, isRare = name === '', isWrite }: Statement,
    values: unknown[],
  ) {
    const query = { text, values, rowMode: 'array' as const, types: asText };
    try {
      const isPrepared = this.sessions.keepStatements && !isRare;
      const sent = isPrepared
        ? { name: preparedNameOf(name, text), ...query }
        : query;
      return (await sendQuery(client, sent)).rows;
    } catch (error) {
      const isUnknown = ['26000', '42P05'].includes(`${sqlState(error)}`);
      if (isUnknown) this.#stopPreparing();
      if (!isUnknown && !isStalePlan(error))
        return this.#throwTranslated(error, isWrite);
      this.#usable.delete(client);
      return (await this.#send(client, query, isWrite)).rows;
    }
  }

  #send(client: PoolClient, query: Query, isWrite?: boolean) {
    const sent = sendQuery(client, query);
    return sent.catch((error) => this.#throwTranslated(error, isWrite));
  }

  /** @param error of the driver */
  #throwTranslated(error: unknown, isWrite = false): never {
    // The server is a standby.
    if (sqlState(error) === '25006') this.discardSessions();
    const failure = unavailable(error);
    if (failure && this.#hasAnswered) this.#report(error as Error);
    if (isWrite && leavesOutcomeUnknown(error)) {
      void this.onWrite?.(undefined);
      throw Unavailable.outcomeUnknown(error);
    }
    throw failure ?? error;
  }

  #answered() {
    this.#hasAnswered = true;
    const { loss, failures } = this.#incidents;
    if (loss.ongoing) loss.recovered();
    if (failures.ongoing) failures.recovered();
  }

  #report(error: Error) {
    const { message: reason } = error;
    const fields = { code: codeOf(error), ...(reason && { reason }) };
    if (isConnectionLoss(error)) this.#incidents.loss.occurred(fields);
    else if (!isConflict(error)) this.#incidents.failures.occurred(fields);
  }

  /**
   * Discards all current sessions: the address may now lead to another server.
   */
  discardSessions() {
    this.#usable.clear();
  }

  /** Breaks all sessions, so that waiting statements fail immediately. */
  cut() {
    for (const client of this.#usable)
      client.connection.stream.destroy(
        new Error('Connection terminated: silence'),
      );
    this.discardSessions();
  }

  /** @param pool `primary`, or host and port of a read node */
  state(pool: string) {
    const { totalCount, idleCount, waitingCount, options } = this.pool;
    return {
      pool,
      idle: idleCount,
      used: totalCount - idleCount,
      max: options.max,
      pending: waitingCount,
    };
  }

  async #connect() {
    try {
      // The pool opens its sessions with the settings that work.
      if (!this.#isDetected)
        Object.assign(this.pool.options, await this.sessions.detect());
      this.#isDetected = true;
      for (;;) {
        const client = await this.#connectReporting();
        if (this.#usable.has(client)) return client;
        client.release(true);
      }
    } catch (error) {
      return this.#throwTranslated(error);
    }
  }

  /**
   * Reports that all connections are in use when a statement waits for one too
   * long.
   */
  async #connectReporting() {
    const { pool } = this;
    const { exhaustion } = this.#incidents;
    const connecting = pool.connect();
    const report = () =>
      exhaustion.occurred({
        connections: pool.totalCount,
        waiting: pool.waitingCount,
      });
    // A statement that gets an idle connection waits for it, too, until the
    // next tick.
    const isExhausted = () => pool.waitingCount > pool.idleCount;
    const timer = isExhausted()
      ? setTimeout(report, exhaustedAfter)
      : undefined;
    const client = await connecting.finally(() => clearTimeout(timer));
    if (exhaustion.ongoing && !isExhausted()) exhaustion.recovered();
    return client;
  }

  #stopPreparing() {
    if (!this.sessions.keepStatements) return;
    this.sessions.keepStatements = false;
    this.log?.warn(
      {},
      'prepared statements do not survive here; statements are sent unprepared from now on',
    );
  }
}

/**
 * The database is lost, its statements fail, or its connections are exhausted.
 */
function incidentsIn(log: EventLog | undefined) {
  return {
    loss: new Incident(log, {
      begins: 'the database is lost',
      ends: 'the database is back',
      count: 'failures',
    }),
    failures: new Incident(log, {
      begins: 'database statements are failing',
      ends: 'database statements succeed again',
      count: 'failures',
      shortestQuiet: quietAfterFailures,
    }),
    exhaustion: new Incident(log, {
      begins: 'all connections to the database are in use',
      ends: 'connections to the database are free again',
    }),
  };
}

type Query = QueryConfig & Partial<QueryArrayConfig>;

/** Sends a query as pg does. */
export type Send = (query: Query) => Promise<QueryResult>;

/**
 * Passes a callback, because pg's own promise keeps each query from the garbage
 * collector (bench/README.md).
 */
async function sendQuery(client: PoolClient, query: Query) {
  try {
    return await new Promise<QueryResult>((resolve, reject) => {
      client.query(query, (error, result) =>
        error ? reject(error) : resolve(result),
      );
    });
  } catch (error) {
    // The driver's stack ends at the socket. This one leads to the caller.
    Error.captureStackTrace(error as Error);
    throw error;
  }
}

// Most columns reach the client as PostgreSQL's text: parsing them would cost
// more than all other work on a row.
export const asText = { getTypeParser: () => (text: string) => text };

function afterConflict(error: unknown, attempt: number, isUndone = false) {
  if (attempt > retries || !(isUndone || isConflict(error))) return undefined;
  return attempt * conflictPause;
}

/**
 * Returns the connection pool of an ORM. MikroORM never releases a connection
 * that breaks in a transaction, because the rollback fails first
 * (https://github.com/kysely-org/kysely/issues/1990). The pool would stay one
 * connection short, and closing it would wait for that connection.
 */
export async function poolOf(orm: MikroORM) {
  const connection = orm.em.getConnection();
  const pool = await connection.getNativeClient();
  // Code that releases the connection itself does so before the next turn of
  // the event loop.
  pool.on('connect', (client) =>
    client.once('end', () => setImmediate(releaseOnce, client, true)),
  );
  return pool;
}

/** Creates a pool without an ORM. */
export function createPool(config: PoolConfig) {
  const pool = new Pool(config);
  // A connection that breaks is replaced; its user gets the error from the
  // statement.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** MikroORM ends the pool only if one of its entity managers has used it. */
export async function endPool(orm: MikroORM, pool: Pool) {
  await orm.close(true);
  if (!pool.ending) await pool.end();
}

export function releaseOnce(client: PoolClient, failure: unknown) {
  try {
    client.release(failure !== undefined);
  } catch {
    // It was released already.
  }
}

const preparedNames = new Map<string, string>();

/** Another text has another name, which PostgreSQL cuts at 63 bytes. */
function preparedNameOf(name: string, text: string) {
  const known = preparedNames.get(text);
  if (known) return known;
  const begin = Buffer.from(name).subarray(0, 40);
  const prepared = `${begin}_${hash('sha256', text).slice(0, 16)}`;
  preparedNames.set(text, prepared);
  return prepared;
}
