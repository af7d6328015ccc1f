import type { Pool, PoolClient, QueryArrayResult } from 'pg';
import { Incident } from '../../runtime/log/incident.ts';
import { retry } from '../../runtime/retry.ts';
import type { PoolState } from '../../runtime/telemetry/observers.ts';
import type { Rows, Statement } from '../records/sql.ts';
import type { Sessions } from './connections.ts';
import { codeOf, isConflict, isLoss, isOutcomeUnknown, outcomeUnknown, sqlState, unavailable } from './errors.ts';
import type { Log } from './options.ts';

/** How often a statement is sent again after a conflict, and how long (ms) the first pause is on average. */
const retries = 3;
const shortPause = 20;

/** Runs statements on one PostgreSQL. */
export class Server {
  /**
   * Called before a write is acknowledged: with what runs statements in the session that wrote, which is kept until the
   * promise is settled; or with undefined when the outcome of the write is unknown.
   */
  onWrite: ((session: Rows | undefined) => Promise<void>) | undefined;
  readonly #availability: Availability | undefined;
  #sessions: Sessions;
  #finding: Promise<void> | undefined;
  /** The connections that may be used again. */
  readonly #usable = new Set<PoolClient>();

  constructor(
    readonly pool: Pool,
    sessions: Sessions,
    private readonly log?: Log,
  ) {
    this.#sessions = sessions;
    this.#availability = log && new Availability(pool, log);
    pool.on('connect', (client) => {
      this.#usable.add(client);
      client.once('end', () => this.#usable.delete(client));
    });
  }

  /**
   * Runs one statement in any session. It is sent again when PostgreSQL has undone it for the sake of another one.
   *
   * @returns rows as arrays in the order of the columns. Every value is the text that PostgreSQL sends, or null.
   * @throws StoreError SERVICE_UNAVAILABLE when PostgreSQL is unreachable or takes too long; else the driver's error.
   */
  rows<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    return retry(() => this.#run<Row>(statement, values), {
      pause: (attempt) => attempt * shortPause,
      isWorthIt: (error, attempt) => attempt <= retries && isConflict(error),
    });
  }

  /** The same as `rows`, as a function. */
  readonly ask: Rows = (statement, values) => this.rows(statement, values);

  async #run<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const client = await this.#connect();
    let failure: Error | undefined;
    let afterwards: Promise<void> | undefined;
    try {
      const { rows } = await this.#send<Row>(client, statement, values, (error) => {
        failure = error;
      });
      this.#availability?.answered();
      if (statement.isWrite) afterwards = this.onWrite?.(rowsIn(client));
      return rows;
    } catch (error) {
      failure = error as Error;
      // PostgreSQL has become a standby, or always was one.
      if (sqlState(error) === '25006') this.renew();
      return this.#refuse(error, statement.isWrite);
    } finally {
      if (afterwards) void afterwards.then(() => client.release(failure));
      else client.release(failure);
    }
  }

  /**
   * Sends a statement, and once more without its name when it was prepared before a column changed its type, or in
   * another session: it has not run.
   */
  async #send<Row extends unknown[]>(
    client: PoolClient,
    { name, text }: Statement,
    values: unknown[],
    onStale: (error: Error) => void,
  ): Promise<QueryArrayResult<Row>> {
    const query = { text, values, rowMode: 'array' as const, types: asWritten };
    try {
      return await client.query<Row>(this.#sessions.keepStatements ? { name, ...query } : query);
    } catch (error) {
      const isUnknown = ['26000', '42P05'].includes(`${sqlState(error)}`);
      if (isUnknown) this.#forgetNames();
      if (!isUnknown && !isStale(error)) throw error;
      onStale(error as Error);
      return await client.query<Row>(query);
    }
  }

  /**
   * Runs statements that only read in one session, in their order; in one round trip where the session pipelines.
   *
   * @throws as `rows` does
   */
  async together(queries: Array<readonly [Statement, unknown[]]>): Promise<Array<Array<Array<string | null>>>> {
    const client = await this.#connect();
    let failure: Error | undefined;
    const fail = (error: Error) => {
      failure = error;
    };
    const sent = queries.map(([statement, values]) =>
      this.#send<Array<string | null>>(client, statement, values, fail),
    );
    try {
      return (await Promise.all(sent)).map(({ rows }) => rows);
    } catch (error) {
      failure = error as Error;
      return this.#refuse(error);
    } finally {
      client.release(failure);
    }
  }

  #refuse(error: unknown, isWrite = false): never {
    this.#availability?.failed(error);
    if (isWrite && isOutcomeUnknown(error)) {
      void this.onWrite?.(undefined);
      throw outcomeUnknown(error);
    }
    throw unavailable(error) ?? error;
  }

  /** From now on only new sessions are used: the way to PostgreSQL may lead to another one now. */
  renew(): void {
    this.#usable.clear();
  }

  /** Breaks all sessions: a statement that waits for an answer fails at once. */
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
      if (this.#sessions.find) await this.#findOut(this.#sessions.find);
      for (;;) {
        const connecting = this.pool.connect();
        this.#availability?.look();
        const client = await connecting.finally(() => this.#availability?.look());
        if (this.#usable.has(client)) return client;
        client.release(true);
      }
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** The pool opens its next sessions as they are found to work. */
  #findOut(find: () => Promise<Sessions>): Promise<void> {
    this.#finding ??= find()
      .then((found) => {
        Object.assign(this.pool.options, found.config);
        this.#sessions = found;
      })
      .finally(() => {
        this.#finding = undefined;
      });
    return this.#finding;
  }

  #forgetNames(): void {
    if (!this.#sessions.keepStatements) return;
    this.#sessions = { ...this.#sessions, keepStatements: false };
    this.log?.warn({}, 'prepared statements do not survive here: they are sent whole from now on');
  }
}

/** How long (ms) a statement must wait for a connection until that is reported. */
const crowdedAfter = 1000;
/** A statement that times out does so every ten seconds; others succeed meanwhile. */
const quietAfterFailures = 15_000;

/** Reports, in a line each, when a database is lost and back, and when its connections are used up. */
class Availability {
  readonly #loss: Incident;
  readonly #failures: Incident;
  readonly #crowd: Incident;
  #crowded: NodeJS.Timeout | undefined;
  /** A database that has never answered is not lost: the start fails, and says so. */
  #hasAnswered = false;

  constructor(
    private readonly pool: Pool,
    log: Log,
  ) {
    const incident = (begins: string, ends: string, quiet?: number) => {
      const onEnd = (ms: number, failures: number) => log.info({ ms, failures }, ends);
      return new Incident({ onStart: (fields) => log.warn(fields, begins), onEnd }, quiet);
    };
    const [fails, works] = ['the database does not carry out statements', 'the database carries out statements again'];
    this.#loss = incident('the database is lost', 'the database is back');
    this.#failures = incident(fails, works, quietAfterFailures);
    this.#crowd = new Incident({
      onStart: (fields) => log.warn(fields, 'all connections to the database are in use'),
      onEnd: (ms) => log.info({ ms }, 'connections to the database are free again'),
    });
  }

  /** A statement has been carried out. */
  answered(): void {
    this.#hasAnswered = true;
    this.#loss.recovered();
    this.#failures.recovered();
  }

  /** No connection was to be had, or a statement has failed: perhaps by its own fault. */
  failed(error: unknown): void {
    if (!this.#hasAnswered) return;
    const { message } = error as Error;
    const fields = { code: codeOf(error), ...(message && { reason: message }) };
    if (isLoss(error)) this.#loss.occurred(fields);
    else if (unavailable(error) && !isConflict(error)) this.#failures.occurred(fields);
  }

  /** To be called when a connection is asked for, and when it has been given. */
  look(): void {
    const { pool } = this;
    const report = () => this.#crowd.occurred({ connections: pool.totalCount, waiting: pool.waitingCount });
    if (pool.waitingCount > 0) this.#crowded ??= setTimeout(report, crowdedAfter).unref();
    else if (this.#crowded) {
      clearTimeout(this.#crowded);
      this.#crowded = undefined;
      this.#crowd.recovered();
    }
  }
}

/** SQLSTATE 0A000 "cached plan must not change result type". */
function isStale(error: unknown): boolean {
  return sqlState(error) === '0A000' && (error as Error).message.startsWith('cached plan');
}

function rowsIn(client: PoolClient): Rows {
  return async ({ text }, values) =>
    (await client.query<Array<string | null>>({ text, values, rowMode: 'array', types: asWritten })).rows;
}

function streamOf(client: PoolClient): { destroy(error: Error): void } {
  return (client as unknown as { connection: { stream: { destroy(error: Error): void } } }).connection.stream;
}

// Most columns reach the client as PostgreSQL's text: parsing them would cost more than all other work on a row.
const asWritten = { getTypeParser: () => (text: string) => text };
