import { setTimeout as sleep } from 'node:timers/promises';
import { MikroORM } from '@mikro-orm/postgresql';
import { Client, type Pool } from 'pg';
import { StoreError } from '../errors.ts';
import { unavailable } from './driver-errors.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './embedded-postgres.ts';
import { lockFile } from './file-lock.ts';
import { type DatabaseOptions, ormOptions } from './options.ts';
import { endPool, poolOf } from './pool.ts';

/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** PostgreSQL, through MikroORM: its entities and migrations, and the same pool for the statements of hot paths. */
export class Database {
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
    // Names of prepared statements collide on the embedded store, where all connections are one backend.
    const { name, text } = this.isEmbedded ? { name: undefined, text: statement.text } : statement;
    try {
      const { rows } = await this.pool.query<Row>({ name, text, values, rowMode: 'array', types: asWritten });
      return rows;
    } catch (error) {
      throw unavailable(error) ?? error;
    }
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
      const release = lockFile(`${this.options.dataDir}/migration.lock`, 60_000);
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

// Most columns go out as the text that they came in; parsing them first would cost more than all the rest of a row.
const asWritten = { getTypeParser: () => (text: string) => text };
