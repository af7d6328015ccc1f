import { Incident } from '@animal-store/log/incident';
import type { Pool, PoolClient, QueryArrayConfig, QueryArrayResult } from 'pg';
import type { Log } from './options.ts';
import {
  codeOf,
  isConflict,
  isConnectionLoss,
  leavesOutcomeUnknown,
  outcomeUnknown,
  sqlState,
  unavailable,
} from './postgres-errors.ts';
import { retry } from './retry.ts';
import type { Sessions } from './sessions.ts';

/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True for a write: a lost connection leaves its outcome unknown. */
  readonly isWrite?: boolean;
}

/** Runs a statement on a server or in one of its sessions. Every value is text, or null. */
export type RunStatement = (statement: Statement, values: unknown[]) => Promise<Array<Array<string | null>>>;

/** A connection pool at this moment. */
export interface PoolState {
  /** `primary`, or host and port of a read node. */
  readonly pool: string;
  readonly idle: number;
  readonly used: number;
  readonly max: number;
  /** How many statements wait for a connection. */
  readonly pending: number;
}

/** Maximum number of retries after a conflict, and the average length (ms) of the first pause. */
const retries = 3;
const shortPause = 20;
/** How long (ms) a statement waits for a connection before that is reported. */
const exhaustedAfter = 1000;
/** Longer than the usual statement timeout of ten seconds, because other statements succeed between two timeouts. */
const quietAfterFailures = 15_000;

/** One PostgreSQL server. The statements of all requests are sent from here. */
export class PostgresServer {
  /**
   * Called before a write is acknowledged. `session` runs further statements on the connection that wrote; the
   * connection is released when the promise settles. There is no `session` when the outcome of the write is unknown.
   */
  onWrite: ((session: RunStatement | undefined) => Promise<void>) | undefined;
  #sessions: Sessions;
  #detecting: Promise<void> | undefined;
  /** The connections that may be reused. */
  readonly #usable = new Set<PoolClient>();
  /** False until the first answer: before that, the failing start reports the error. */
  #hasAnswered = false;
  readonly #incidents: ReturnType<typeof incidentsIn> | undefined;
  #exhaustionTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly pool: Pool,
    sessions: Sessions,
    private readonly log?: Log,
  ) {
    this.#sessions = sessions;
    this.#incidents = log && incidentsIn(log);
    pool.on('connect', (client) => {
      this.#usable.add(client);
      client.once('end', () => this.#usable.delete(client));
    });
  }

  /**
   * Runs one statement in any session, and retries it after a conflict.
   *
   * @returns rows as arrays in the order of the columns. Every value is the text that PostgreSQL sends, or null.
   * @throws DatabaseUnavailable when PostgreSQL is unreachable or takes too long; else the driver's error
   */
  readonly rows = <Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> =>
    retry(
      () => this.#run<Row>(statement, values),
      (error, attempt) => (attempt <= retries && isConflict(error) ? attempt * shortPause : undefined),
    );

  async #run<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const client = await this.#connect();
    let failure: Error | undefined;
    let afterwards: Promise<void> | undefined;
    try {
      const { rows } = await this.#query<Row>(client, statement, values);
      this.#answered();
      if (statement.isWrite) afterwards = this.onWrite?.(runIn(client));
      return rows;
    } catch (error) {
      failure = error as Error;
      // The server is a standby.
      if (sqlState(error) === '25006') this.renew();
      return this.#throwTranslated(error, statement.isWrite);
    } finally {
      if (afterwards) void afterwards.then(() => client.release(failure));
      else client.release(failure);
    }
  }

  /**
   * Sends a statement. When its prepared form is stale (a column changed its type) or unknown (another session prepared
   * it), it has not run and is sent once more without its name.
   */
  async #query<Row extends unknown[]>(
    client: PoolClient,
    { name, text }: Statement,
    values: unknown[],
  ): Promise<QueryArrayResult<Row>> {
    const query = { text, values, rowMode: 'array' as const, types: asText };
    try {
      return await queryWith<Row>(client, this.#sessions.keepStatements ? { name, ...query } : query);
    } catch (error) {
      const isUnknown = ['26000', '42P05'].includes(`${sqlState(error)}`);
      if (isUnknown) this.#stopPreparing();
      if (!isUnknown && !isStale(error)) throw error;
      this.#usable.delete(client);
      return await queryWith<Row>(client, query);
    }
  }

  /**
   * Runs statements that only read in one session, in order; in one round trip where the session pipelines.
   *
   * @throws as `rows` does
   */
  async readInOneSession(queries: Array<readonly [Statement, unknown[]]>): Promise<Array<Array<Array<string | null>>>> {
    const client = await this.#connect();
    let failure: Error | undefined;
    const sent = queries.map(([statement, values]) => this.#query<Array<string | null>>(client, statement, values));
    try {
      const results = await Promise.all(sent);
      this.#answered();
      return results.map(({ rows }) => rows);
    } catch (error) {
      failure = error as Error;
      return this.#throwTranslated(error);
    } finally {
      client.release(failure);
    }
  }

  #throwTranslated(error: unknown, isWrite = false): never {
    const failure = unavailable(error);
    if (failure && this.#hasAnswered) this.#report(error as Error);
    if (isWrite && leavesOutcomeUnknown(error)) {
      void this.onWrite?.(undefined);
      throw outcomeUnknown(error);
    }
    throw failure ?? error;
  }

  #answered(): void {
    this.#hasAnswered = true;
    const { loss, failures } = this.#incidents ?? {};
    if (loss?.ongoing) loss.recovered();
    if (failures?.ongoing) failures.recovered();
  }

  #report(error: Error): void {
    const { message: reason } = error;
    const fields = { code: codeOf(error), ...(reason && { reason }) };
    if (isConnectionLoss(error)) this.#incidents?.loss.occurred(fields);
    else if (!isConflict(error)) this.#incidents?.failures.occurred(fields);
  }

  /** Call this when a connection is requested, and when it has been obtained. */
  #watchPool({ exhaustion }: ReturnType<typeof incidentsIn>): void {
    const { pool } = this;
    // A statement that gets an idle connection waits for it, too, until the next tick.
    if (pool.waitingCount > pool.idleCount) {
      const report = () => exhaustion.occurred({ connections: pool.totalCount, waiting: pool.waitingCount });
      this.#exhaustionTimer ??= setTimeout(report, exhaustedAfter).unref();
    } else if (this.#exhaustionTimer) {
      clearTimeout(this.#exhaustionTimer);
      this.#exhaustionTimer = undefined;
      exhaustion.recovered();
    }
  }

  /** Discards all current sessions: the address may now lead to another server. */
  renew(): void {
    this.#usable.clear();
  }

  /** Breaks all sessions, so that waiting statements fail immediately. */
  cut(): void {
    for (const client of this.#usable) streamOf(client).destroy(new Error('Connection terminated: silence'));
    this.renew();
  }

  state(pool: string): PoolState {
    const { totalCount, idleCount, waitingCount, options } = this.pool;
    return { pool, idle: idleCount, used: totalCount - idleCount, max: options.max, pending: waitingCount };
  }

  async #connect(): Promise<PoolClient> {
    try {
      if (this.#sessions.detect) await this.#detect(this.#sessions.detect);
      for (;;) {
        const connecting = this.pool.connect();
        const incidents = this.#incidents;
        if (incidents) this.#watchPool(incidents);
        const client = await connecting.finally(() => incidents && this.#watchPool(incidents));
        if (this.#usable.has(client)) return client;
        client.release(true);
      }
    } catch (error) {
      return this.#throwTranslated(error);
    }
  }

  /** Detects working settings, and opens the pool's next sessions with them. */
  #detect(detect: () => Promise<Sessions>): Promise<void> {
    this.#detecting ??= detect()
      .then((detected) => {
        Object.assign(this.pool.options, detected.config);
        this.#sessions = detected;
      })
      .finally(() => {
        this.#detecting = undefined;
      });
    return this.#detecting;
  }

  #stopPreparing(): void {
    if (!this.#sessions.keepStatements) return;
    this.#sessions = { ...this.#sessions, keepStatements: false };
    this.log?.warn({}, 'prepared statements do not survive here; statements are sent unprepared from now on');
  }
}

/** The database is lost, its statements fail, or its connections are exhausted. */
function incidentsIn(log: Log) {
  const incident = (begins: string, ends: string, quiet?: number) => {
    const onEnd = (ms: number, failures: number) => log.info({ ms, failures }, ends);
    return new Incident({ onStart: (fields) => log.warn(fields, begins), onEnd }, quiet);
  };
  const [fails, works] = ['database statements are failing', 'database statements succeed again'];
  const exhaustion = new Incident({
    onStart: (fields) => log.warn(fields, 'all connections to the database are in use'),
    onEnd: (ms) => log.info({ ms }, 'connections to the database are free again'),
  });
  return {
    loss: incident('the database is lost', 'the database is back'),
    failures: incident(fails, works, quietAfterFailures),
    exhaustion,
  };
}

/** SQLSTATE 0A000 "cached plan must not change result type". */
function isStale(error: unknown): boolean {
  return sqlState(error) === '0A000' && (error as Error).message.startsWith('cached plan');
}

/** Passes a callback, because pg's own promise keeps each query from the garbage collector (bench/README.md). */
async function queryWith<Row extends unknown[]>(
  client: PoolClient,
  query: QueryArrayConfig,
): Promise<QueryArrayResult<Row>> {
  try {
    return await new Promise((resolve, reject) => {
      client.query<Row>(query, (error, result) => (error ? reject(error) : resolve(result)));
    });
  } catch (error) {
    // The driver's stack ends at the socket. This one leads to the caller.
    Error.captureStackTrace(error as Error);
    throw error;
  }
}

function runIn(client: PoolClient): RunStatement {
  return async ({ text }, values) =>
    (await queryWith<Array<string | null>>(client, { text, values, rowMode: 'array', types: asText })).rows;
}

function streamOf(client: PoolClient): { destroy(error: Error): void } {
  return (client as unknown as { connection: { stream: { destroy(error: Error): void } } }).connection.stream;
}

// Most columns reach the client as PostgreSQL's text: parsing them would cost more than all other work on a row.
const asText = { getTypeParser: () => (text: string) => text };
