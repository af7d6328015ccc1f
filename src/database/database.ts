import { setTimeout as sleep } from 'node:timers/promises';
import { MikroORM } from '@mikro-orm/postgresql';
import { Client, type Pool, type PoolClient } from 'pg';
import { migrations } from '../../migrations/index.ts';
import { StoreError, tryAgain } from '../errors.ts';
import { Batches, type BatchOptions } from './batches.ts';
import { isOutcomeUnknown, isUnmigrated, outcomeUnknown, unavailable } from './driver-errors.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './embedded-postgres.ts';
import { lockFileWithin } from './file-lock.ts';
import { type DatabaseOptions, ormOptions } from './options.ts';
import { endPool, poolOf } from './pool.ts';

/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True when it must not be repeated unless it is known to have failed. */
  readonly isWrite?: boolean;
}

/** PostgreSQL, through MikroORM: its entities and migrations, and the same pool for the statements of hot paths. */
export class Database {
  readonly #queues: Array<{ isStuck: boolean }> = [];

  private constructor(
    readonly orm: MikroORM,
    private readonly pool: Pool,
    private readonly options: DatabaseOptions,
    private readonly embedded: EmbeddedPostgres | undefined,
  ) {}

  /** Opens the embedded store, or prepares the pool for a PostgreSQL that need not be reachable yet. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const embedded = options.url
      ? undefined
      : await openEmbeddedPostgres(options.dataDir, options.onLost ?? (() => undefined));
    const orm = new MikroORM(ormOptions(options, embedded));
    return new Database(orm, await poolOf(orm), options, embedded);
  }

  /** True when the store is our own, in a folder. */
  get isEmbedded(): boolean {
    return this.embedded !== undefined;
  }

  /**
   * Runs one statement on any connection.
   *
   * @returns rows as arrays in the order of the columns, every value as PostgreSQL writes it, or null.
   * @throws StoreError SERVICE_UNAVAILABLE when PostgreSQL cannot be reached or takes too long; else the driver's error.
   */
  async rows<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const client = await this.#connect();
    const { name, text, isWrite } = statement;
    const query = { text, values, rowMode: 'array' as const, types: asWritten };
    let failure: Error | undefined;
    try {
      // Names of prepared statements collide on the embedded store, where all connections are one backend.
      return (await client.query<Row>(this.isEmbedded ? query : { name, ...query })).rows;
    } catch (error) {
      failure = error as Error;
      // Prepared before a column changed its type, or for another session: it has not run.
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

  /** Lets the inputs of a read or write travel together; how long they may wait follows from the time-out of statements. */
  batched<In, Out>(
    run: (inputs: In[]) => Promise<Array<Out | Error>>,
    options: Omit<BatchOptions<In>, 'maxWaiting' | 'maxAge'>,
  ): Batches<In, Out> {
    const maxAge = this.options.statementTimeout / 2;
    // What is slow on one table leaves connections for the others, and for the keys.
    const maxInFlight = Math.min(options.maxInFlight, Math.max(1, Math.floor(this.options.poolMax / 3)));
    const batches = new Batches(run, { maxWaiting: 4096, maxAge, ...options, maxInFlight });
    this.#queues.push(batches);
    return batches;
  }

  /** Applies pending migrations, one node at a time; they take as long as they take. @returns the names of those applied. */
  async migrate(): Promise<string[]> {
    return this.exclusively(async () => {
      const orm = new MikroORM(ormOptions({ ...this.options, statementTimeout: 0 }, this.embedded));
      const pool = await poolOf(orm);
      try {
        return (await orm.migrator.up()).map(({ name }) => name);
      } finally {
        await endPool(orm, pool);
      }
    });
  }

  /** For the start: waits while the embedded store changes hands. @throws StoreError SERVICE_UNAVAILABLE */
  async reach(): Promise<void> {
    await (this.isEmbedded ? whileItMoves(() => this.ping()) : this.ping());
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  async ping(): Promise<void> {
    await this.rows({ name: 'ping', text: 'select 1' }, []);
  }

  /** Whether it can serve: reached, written to, migrated, and not stuck. @throws StoreError SERVICE_UNAVAILABLE */
  async assertReady(): Promise<void> {
    if (this.#queues.some(({ isStuck }) => isStuck)) throw tryAgain('What waits for the database does not get on.');
    const metadata = [...this.orm.getMetadata().getAll().values()];
    const sequences = metadata.filter(({ props }) => props.some(({ autoincrement }) => autoincrement));
    const [row] = await this.rows<[isReadOnly: string, mayWrite: string | null, applied: string]>(readiness, [
      metadata.map(({ tableName }) => tableName),
      sequences.map(({ tableName }) => tableName),
      migrations.map(({ name }) => name),
    ]).catch((error) => {
      if (isUnmigrated(error)) throw tryAgain('The database has not been migrated.', error);
      throw (error as { code?: string }).code === '42501' ? tryAgain(mayNot, error) : error;
    });
    const [isReadOnly, mayWrite, applied] = row as NonNullable<typeof row>;
    if (isReadOnly === 't') throw tryAgain('The database is read-only: a standby, perhaps.');
    if (mayWrite !== 't') throw tryAgain(mayNot);
    if (Number(applied) < migrations.length) throw tryAgain('The database lacks migrations.');
  }

  async close(): Promise<void> {
    await endPool(this.orm, this.pool);
    await this.embedded?.close();
  }

  /**
   * Does what only one process at a time may do to this database.
   *
   * Advisory locks exclude nobody on the embedded store, files do nothing between machines: each where it works.
   */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.isEmbedded) {
      const release = await lockFileWithin(`${this.options.dataDir}/migration.lock`, 60_000);
      if (!release) throw new Error('Another process has been preparing the embedded store for a minute.');
      return whileItMoves(work).finally(release);
    }
    // A connection beside the pool, which waits as long as it takes.
    const holder = new Client({ ...this.pool.options, stream: undefined });
    holder.on('error', () => undefined);
    try {
      await holder.connect();
      await holder.query("set statement_timeout = 0; select pg_advisory_lock(hashtext('animal-store migrations'))");
      return await work();
    } finally {
      // Ending the session releases the lock, whatever state it is in.
      await holder.end();
    }
  }
}

/** Repeats what failed because the process that had the embedded store open has left it; this one, or another, takes over. */
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

/** SQLSTATE 0A000 "cached plan must not change result type" and 26000, no such prepared statement. */
function isStale(error: unknown): boolean {
  const { code, message = '' } = error as { code?: string; message?: string };
  return code === '26000' || (code === '0A000' && message.startsWith('cached plan'));
}

const mayNot = 'The role in DATABASE_URL may not read and write all tables.';

const readiness: Statement = {
  name: 'readiness',
  text: `
    select pg_is_in_recovery() or current_setting('transaction_read_only')::bool,
      (select bool_and(has_table_privilege(name, 'select') and has_table_privilege(name, 'insert'))
        from unnest($1::text[]) as name)
      and (select bool_and(has_sequence_privilege(pg_get_serial_sequence(name, 'id'), 'usage'))
        from unnest($2::text[]) as name),
      (select count(*) from mikro_orm_migrations where name = any($3::text[]))`,
};

// Most columns go out as the text that they came in; parsing them first would cost more than all the rest of a row.
const asWritten = { getTypeParser: () => (text: string) => text };
