import { setTimeout as sleep } from 'node:timers/promises';
import { MikroORM } from '@mikro-orm/postgresql';
import { Client, type Pool, type PoolClient } from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../embedded/postgres.ts';
import { StoreError, tryAgain } from '../errors.ts';
import { Batches, type BatchOptions } from './batches.ts';
import { isOutcomeUnknown, outcomeUnknown, unavailable } from './errors.ts';
import { type DatabaseOptions, type Model, ormOptions } from './options.ts';
import { endPool, poolOf } from './pool.ts';
import { assertServable } from './readiness.ts';
import type { Statement } from './statement.ts';

/** PostgreSQL through MikroORM: entities and migrations. The statements of hot paths use the same connection pool. */
export class Database {
  readonly #queues: Array<{ isStuck: boolean }> = [];

  private constructor(
    readonly orm: MikroORM,
    private readonly pool: Pool,
    private readonly options: DatabaseOptions,
    private readonly model: Model,
    private readonly embedded: EmbeddedPostgres | undefined,
  ) {}

  /** Opens the embedded store, or creates the pool for a PostgreSQL that need not be reachable yet. */
  static async open(options: DatabaseOptions, model: Model): Promise<Database> {
    const embedded = options.url
      ? undefined
      : await openEmbeddedPostgres(options.dataDir, options.onLost ?? (() => undefined), options.prepared);
    const orm = new MikroORM(ormOptions(options, model, embedded));
    return new Database(orm, await poolOf(orm), options, model, embedded);
  }

  /** Maximum size of a page, in bytes. */
  get maxPageBytes(): number {
    return this.options.maxPageBytes;
  }

  /** True for the embedded store, in a folder. */
  get isEmbedded(): boolean {
    return this.embedded !== undefined;
  }

  /**
   * Runs one statement on any connection.
   *
   * @returns rows as arrays in the order of the columns. Every value is the text that PostgreSQL sends, or null.
   * @throws StoreError SERVICE_UNAVAILABLE when PostgreSQL is unreachable or takes too long; else the driver's error.
   */
  async rows<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const client = await this.#connect();
    const { name, text, isWrite } = statement;
    const query = { text, values, rowMode: 'array' as const, types: asWritten };
    let failure: Error | undefined;
    try {
      // All connections to the embedded store share one backend, so names of prepared statements would collide.
      return (await client.query<Row>(this.isEmbedded ? query : { name, ...query })).rows;
    } catch (error) {
      failure = error as Error;
      // The statement was prepared before a column changed its type, or for another session. It has not run.
      if (isStale(error)) return await client.query<Row>(query).then(({ rows }) => rows, refuse);
      return refuse(error);
    } finally {
      client.release(failure);
    }

    function refuse(error: unknown): never {
      if (isWrite && isOutcomeUnknown(error)) throw outcomeUnknown(error);
      throw unavailable(error) ?? error;
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      return await this.pool.connect();
    } catch (error) {
      throw unavailable(error) ?? error;
    }
  }

  /** Creates the batches of a read or write. Their maximum waiting time follows from the statement timeout. */
  batched<In, Out>(
    run: (inputs: In[]) => Promise<Array<Out | Error>>,
    options: Omit<BatchOptions<In>, 'maxWaiting' | 'maxAge'>,
  ): Batches<In, Out> {
    const maxAge = this.options.statementTimeout / 2;
    // One slow table must leave connections for the other tables and for the keys.
    const maxInFlight = Math.min(options.maxInFlight, Math.max(1, Math.floor(this.options.poolMax / 3)));
    const batches = new Batches(run, { maxWaiting: 4096, maxAge, ...options, maxInFlight });
    this.#queues.push(batches);
    return batches;
  }

  /** Applies pending migrations, one node at a time, without a timeout. @returns the names of those applied. */
  async migrate(): Promise<string[]> {
    return this.exclusively(async () => {
      const orm = new MikroORM(ormOptions({ ...this.options, statementTimeout: 0 }, this.model, this.embedded));
      const pool = await poolOf(orm);
      try {
        return (await orm.migrator.up()).map(({ name }) => name);
      } finally {
        await endPool(orm, pool);
      }
    });
  }

  /** Used at start: waits while the embedded store changes owner. @throws StoreError SERVICE_UNAVAILABLE */
  async reach(): Promise<void> {
    await (this.isEmbedded ? whileItMoves(() => this.ping()) : this.ping());
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  async ping(): Promise<void> {
    await this.rows({ name: 'ping', text: 'select 1' }, []);
  }

  /** Checks that the database is reachable, writable, migrated and not stuck. @throws StoreError SERVICE_UNAVAILABLE */
  async assertReady(): Promise<void> {
    if (this.#queues.some(({ isStuck }) => isStuck)) throw tryAgain('What waits for the database does not get on.');
    await assertServable(this.orm, (statement, values) => this.rows(statement, values), this.model);
  }

  async close(): Promise<void> {
    await endPool(this.orm, this.pool);
    await this.embedded?.close();
  }

  /**
   * Runs work that only one process at a time may do to this database.
   *
   * Advisory locks do not work on the embedded store, and file locks do not work between machines: each is used where
   * it works.
   */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.embedded) {
      const release = await this.embedded.exclude(60_000);
      if (!release) throw new Error('Another process has been preparing the embedded store for a minute.');
      return whileItMoves(work).finally(release);
    }
    // A connection outside the pool, which waits without a timeout.
    const holder = new Client({ ...this.pool.options, stream: undefined });
    holder.on('error', () => undefined);
    try {
      await holder.connect();
      await holder.query("set statement_timeout = 0; select pg_advisory_lock(hashtext('animal-store migrations'))");
      return await work();
    } finally {
      // Ending the session releases the lock, in any state.
      await holder.end();
    }
  }
}

/** Retries work that failed because the owner of the embedded store has ended; this process or another takes over. */
async function whileItMoves<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + 30_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const moves = error instanceof StoreError || unavailable(error);
      if (!moves || Date.now() > giveUpAt) throw error;
      await sleep(100);
    }
  }
}

/** SQLSTATE 0A000 "cached plan must not change result type", and 26000 "no such prepared statement". */
function isStale(error: unknown): boolean {
  const { code, message = '' } = error as { code?: string; message?: string };
  return code === '26000' || (code === '0A000' && message.startsWith('cached plan'));
}

// Most columns reach the client as PostgreSQL's text: parsing them would cost more than all other work on a row.
const asWritten = { getTypeParser: () => (text: string) => text };
