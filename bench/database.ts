import pg from 'pg';
import { ourProgram } from './programs.ts';
import { start } from './server.ts';
import { ourRest } from './systems.ts';
import { UserError } from './user-error.ts';

/** Percentages of two statuses. All other pets are sold. */
export interface StatusShares {
  available: number;
  pending: number;
}

/** A temporary database on an existing server. */
export class BenchDatabase {
  readonly url: string;
  readonly client: pg.Client;
  readonly #server: pg.Client;
  readonly #name: string;
  #petCount = 0;

  private constructor(server: pg.Client, serverUrl: string, name: string) {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    this.url = url.href;
    // The service sets `jit` off as well (src/database/options.ts), so the
    // plans are the same.
    this.client = new pg.Client({
      connectionString: this.url,
      options: '-c jit=off',
    });
    this.#server = server;
    this.#name = name;
  }

  /**
   * @param serverUrl any database of the server, with a user that may create
   *   databases
   */
  static async create(serverUrl: string): Promise<BenchDatabase> {
    const server = new pg.Client({ connectionString: serverUrl });
    try {
      await server.connect();
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      throw new UserError(
        `The PostgreSQL of BENCH_DATABASE_URL cannot be reached: ${message || code}.`,
      );
    }
    const database = new BenchDatabase(
      server,
      serverUrl,
      `animal_store_bench_${process.pid}`,
    );
    await server.query(`create database ${database.#name}`);
    try {
      await database.client.connect();
      // The service creates the tables with its migrations.
      const ours = await start(ourProgram, ourRest, database.url);
      await ours.stop();
      return database;
    } catch (error) {
      await database.drop();
      throw error;
    }
  }

  /**
   * Fills the table with ids from 1 and random statuses with these shares. All
   * runs have the same rows.
   */
  async seed(
    petCount: number,
    { available, pending }: StatusShares,
  ): Promise<void> {
    this.#petCount = petCount;
    // Autovacuum would disturb measurements.
    await this.client.query('alter table pet set (autovacuum_enabled = false)');
    await this.client.query(
      'truncate pet restart identity; select setseed(0.5)',
    );
    await this.client.query(
      `insert into pet (name, category_id, status)
       select 'Animal ' || number, 1 + number % 500,
         case when chance < $2 then 'available' when chance < $3 then 'pending' else 'sold' end
       from (select number, random() * 100 as chance from generate_series(1, $1::bigint) as number) as animal
       order by number`,
      [petCount, available, available + pending],
    );
    await this.client.query('vacuum analyze pet');
  }

  /** Removes the rows created since `seed`. */
  async restore(): Promise<void> {
    await this.client.query('delete from pet where id > $1', [this.#petCount]);
    await this.client.query('vacuum analyze pet');
  }

  async version(): Promise<string> {
    const { rows } = await this.client.query<{ server_version: string }>(
      'show server_version',
    );
    return rows[0]?.server_version ?? 'unknown';
  }

  async drop(): Promise<void> {
    await this.client.end().catch(() => undefined);
    await this.#server.query(
      `drop database if exists ${this.#name} with (force)`,
    );
    await this.#server.end();
  }
}
