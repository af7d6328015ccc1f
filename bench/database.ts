import pg from 'pg';
import { Refusal } from './options.ts';
import { ourProgram } from './programs.ts';
import { start } from './server.ts';
import { ourRest } from './systems.ts';

/** Parts of the animals, in percent; the rest is sold. */
export interface Skew {
  available: number;
  pending: number;
}

/** A database of our own on somebody's server: made, filled, and dropped at the end. */
export class BenchDatabase {
  readonly url: string;
  readonly client: pg.Client;
  readonly #server: pg.Client;
  readonly #name: string;
  #animals = 0;

  private constructor(server: pg.Client, serverUrl: string, name: string) {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    this.url = url.href;
    // Plans are looked at as the service gets them (packages/postgres/src/options.ts).
    this.client = new pg.Client({ connectionString: this.url, options: '-c jit=off' });
    this.#server = server;
    this.#name = name;
  }

  /** @param serverUrl any database of the server; its user may create databases. */
  static async create(serverUrl: string): Promise<BenchDatabase> {
    const server = new pg.Client({ connectionString: serverUrl });
    try {
      await server.connect();
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      throw new Refusal(`The PostgreSQL of BENCH_DATABASE_URL cannot be reached: ${message || code}.`);
    }
    const database = new BenchDatabase(server, serverUrl, `animal_store_bench_${process.pid}`);
    await server.query(`create database ${database.#name}`);
    try {
      await database.client.connect();
      // Our own migrations make the tables, as they do for everybody.
      const ours = await start(ourProgram, ourRest, database.url);
      await ours.stop();
      return database;
    } catch (error) {
      await database.drop();
      throw error;
    }
  }

  /** Fills the table with ids from 1, statuses mixed at random by their parts; the same in every run. */
  async seed(animals: number, { available, pending }: Skew): Promise<void> {
    this.#animals = animals;
    // Vacuum comes when we say so, never in the middle of a measurement.
    await this.client.query('alter table pet set (autovacuum_enabled = false)');
    await this.client.query('truncate pet restart identity; select setseed(0.5)');
    await this.client.query(
      `insert into pet (name, category_id, status)
       select 'Animal ' || number, 1 + number % 500,
         case when chance < $2 then 'available' when chance < $3 then 'pending' else 'sold' end
       from (select number, random() * 100 as chance from generate_series(1, $1::bigint) as number) as animal
       order by number`,
      [animals, available, available + pending],
    );
    await this.client.query('vacuum analyze pet');
  }

  /** Removes what was created since the seed. */
  async restore(): Promise<void> {
    await this.client.query('delete from pet where id > $1', [this.#animals]);
    await this.client.query('vacuum analyze pet');
  }

  async version(): Promise<string> {
    const { rows } = await this.client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? 'unknown';
  }

  async drop(): Promise<void> {
    await this.client.end().catch(() => undefined);
    await this.#server.query(`drop database if exists ${this.#name} with (force)`);
    await this.#server.end();
  }
}
