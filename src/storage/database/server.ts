import type { Pool, PoolClient, QueryArrayResult } from 'pg';
import type { Rows, Statement } from '../records/sql.ts';
import { Availability } from './availability.ts';
import { isOutcomeUnknown, outcomeUnknown, sqlState, unavailable } from './errors.ts';
import type { Log } from './options.ts';
import type { Sessions } from './sessions.ts';

export interface ServerOptions {
  /** Whether statements are prepared once per session. */
  keepStatements: boolean;
  /** Finds out how sessions are to be opened, where that is not known. */
  find?: (() => Promise<Sessions>) | undefined;
  log?: Log | undefined;
}

/** Runs statements on one PostgreSQL. */
export class Server {
  readonly pool: Pool;
  /**
   * Called before a write is acknowledged: with what runs statements in the session that wrote, which is kept until the
   * promise is settled; or with undefined when nobody knows whether it is written.
   */
  onWrite: ((session: Rows | undefined) => Promise<void>) | undefined;
  readonly #log: Log | undefined;
  readonly #availability: Availability | undefined;
  #keepStatements: boolean;
  #find: (() => Promise<Sessions>) | undefined;
  #finding: Promise<void> | undefined;
  /** Sessions of an earlier generation are not used again. */
  #generation = 0;
  readonly #generations = new WeakMap<PoolClient, number>();
  readonly #clients = new Set<PoolClient>();

  constructor(pool: Pool, { keepStatements, find, log }: ServerOptions) {
    this.pool = pool;
    this.#log = log;
    this.#availability = log && new Availability(pool, log);
    this.#keepStatements = keepStatements;
    this.#find = find;
    pool.on('connect', (client) => {
      this.#generations.set(client, this.#generation);
      this.#clients.add(client);
      client.once('end', () => this.#clients.delete(client));
    });
  }

  /**
   * Runs one statement in any session.
   *
   * @returns rows as arrays in the order of the columns. Every value is the text that PostgreSQL sends, or null.
   * @throws StoreError SERVICE_UNAVAILABLE when PostgreSQL is unreachable or takes too long; else the driver's error.
   */
  async rows<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
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
      return await client.query<Row>(this.#keepStatements ? { name, ...query } : query);
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

  /** The same as `rows`, as a function. */
  readonly ask: Rows = (statement, values) => this.rows(statement, values);

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
    this.#generation += 1;
  }

  /** Breaks all sessions: whoever waits for an answer in one gets an error at once. */
  cut(): void {
    this.renew();
    for (const client of this.#clients) streamOf(client).destroy(new Error('Connection terminated: silence'));
  }

  async #connect(): Promise<PoolClient> {
    try {
      if (this.#find) await this.#findOut(this.#find);
      for (;;) {
        const connecting = this.pool.connect();
        this.#availability?.look();
        const client = await connecting.finally(() => this.#availability?.look());
        if (this.#generations.get(client) === this.#generation) return client;
        client.release(true);
      }
    } catch (error) {
      return this.#refuse(error);
    }
  }

  /** The pool opens its next sessions as they are found to work. */
  #findOut(find: () => Promise<Sessions>): Promise<void> {
    this.#finding ??= find()
      .then(({ config, keepStatements }) => {
        Object.assign(this.pool.options, config);
        this.#keepStatements = keepStatements;
        this.#find = undefined;
      })
      .finally(() => {
        this.#finding = undefined;
      });
    return this.#finding;
  }

  #forgetNames(): void {
    if (!this.#keepStatements) return;
    this.#keepStatements = false;
    this.#log?.warn({}, 'prepared statements do not survive here: they are sent whole from now on');
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
export const asWritten = { getTypeParser: () => (text: string) => text };
