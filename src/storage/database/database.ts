import { MikroORM } from '@mikro-orm/postgresql';
import { Client } from 'pg';
import { StoreError, tryAgain } from '../../errors.ts';
import { retry } from '../../runtime/retry.ts';
import type { PoolState, QueueState } from '../../runtime/telemetry/observers.ts';
import { Batches, type BatchOptions, type Run } from '../records/batches.ts';
import type { Statement } from '../records/sql.ts';
import { endPool, findSessions, openEmbedded, poolOf, poolWith, type Sessions, sessionsFor } from './connections.ts';
import { advanceCounters } from './counters.ts';
import { isUnmigrated, unavailable } from './errors.ts';
import { type AssertHeld, exclusivelyIn } from './exclusive.ts';
import { applyMigrations, lacksMigration, migrationPatience } from './migrations.ts';
import { type DatabaseOptions, type EmbeddedPostgres, type Model, ormOptions } from './options.ts';
import { assertServable, pendingMigrations } from './readiness.ts';
import { Replicas } from './replicas.ts';
import { Server } from './server.ts';

/** PostgreSQL through MikroORM: entities and migrations. The statements of hot paths use the same connection pool. */
export class Database {
  #hasCitus: boolean | undefined;
  readonly #queues: Array<{ isStuck: boolean; state: QueueState }> = [];

  private constructor(
    readonly orm: MikroORM,
    private readonly primary: Server,
    /** One connection for checks, which do not wait behind the statements of requests. */
    private readonly checks: Server,
    private readonly replicas: Replicas | undefined,
    private readonly sessions: Sessions,
    private readonly options: DatabaseOptions,
    private readonly model: Model,
    readonly embedded: EmbeddedPostgres | undefined,
  ) {}

  /** Opens the embedded store, or creates the pool for a PostgreSQL that need not be reachable yet. */
  static async open(options: DatabaseOptions, model: Model): Promise<Database> {
    const embedded = options.url ? undefined : await openEmbedded(options);
    const sessions = await sessionsFor(options, embedded);
    const orm = new MikroORM(ormOptions(options, model, sessions.config));
    const primary = new Server(await poolOf(orm), sessions, options.log);
    const replicas = options.readUrls && new Replicas(options.readUrls, primary, options);
    const checks = new Server(poolWith({ ...sessions.config, max: 1 }), sessions);
    return new Database(orm, primary, checks, replicas, sessions, options, model, embedded);
  }

  /** True for the embedded store, in a folder. */
  get isEmbedded(): boolean {
    return this.embedded !== undefined;
  }

  /** What an operator should run in the database: a pooler drops our settings of sessions. */
  get advice(): string[] | undefined {
    return this.sessions.advice;
  }

  /**
   * Runs one statement where all is written.
   *
   * @returns rows as arrays in the order of the columns. Every value is the text that PostgreSQL sends, or null.
   * @throws StoreError SERVICE_UNAVAILABLE when PostgreSQL is unreachable or takes too long; else the driver's error.
   */
  rows<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    return this.primary.rows(statement, values);
  }

  /**
   * The same for a statement that only reads: on a read node, where one has all that this process has written and shown.
   *
   * @param servedBy is told the name of the server, where there are read nodes
   */
  async read<Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
    servedBy: (node: string) => void = () => undefined,
  ): Promise<Row[]> {
    if (!this.replicas) return this.rows(statement, values);
    const sentTo = (name: string) => {
      servedBy(name);
      for (const observer of this.options.observers ?? []) observer.readOn?.(name);
    };
    const rows = await this.replicas.read<Row>(statement, values, sentTo);
    if (rows) return rows;
    sentTo('primary');
    return this.rows(statement, values);
  }

  /** True for a table that is spread over the nodes of a Citus cluster, each of which has a snapshot of its own. */
  async isSharded(table: string): Promise<boolean> {
    const text = `
      select exists (select from pg_catalog.pg_dist_partition
        where logicalrelid = to_regclass(quote_ident($1)) and partmethod = 'h')`;
    return (await this.#askCitus({ name: 'is_sharded', text }, [table])) === 't';
  }

  /** What Citus says; undefined where it is not installed: a statement that names its tables is refused there. */
  async #askCitus(statement: Statement, values: unknown[]): Promise<string | undefined> {
    if (this.isEmbedded) return undefined;
    const text = `select to_regclass('pg_catalog.pg_dist_partition') is not null`;
    this.#hasCitus ??= (await this.rows<[string]>({ name: 'has_citus', text }, []))[0]?.[0] === 't';
    return this.#hasCitus ? (await this.rows<[string]>(statement, values))[0]?.[0] : undefined;
  }

  /** Creates the batches of a read or write. Their maximum waiting time follows from the statement timeout. */
  batched<In, Out>(
    run: Run<In, Out>,
    options: Omit<BatchOptions, 'maxWaiting' | 'maxAge' | 'observers'>,
  ): Batches<In, Out> {
    const maxAge = this.options.statementTimeout / 2;
    // One slow table must leave connections for the other tables and for the keys.
    const maxInFlight = Math.min(options.maxInFlight, Math.max(1, Math.floor(this.options.poolMax / 3)));
    const { observers = [] } = this.options;
    const batches = new Batches(run, { maxWaiting: 4096, maxAge, ...options, maxInFlight, observers });
    this.#queues.push(batches);
    return batches;
  }

  /** What waits for the database now. */
  get queues(): QueueState[] {
    return this.#queues.map(({ state }) => state);
  }

  get pools(): PoolState[] {
    return [this.primary.state('primary'), ...(this.replicas?.pools ?? [])];
  }

  /**
   * Applies pending migrations, one node at a time (`migrations.ts`), and sets counters that are behind their rows.
   *
   * @returns the names of those applied
   */
  async migrate(patience = migrationPatience): Promise<string[]> {
    const { model, embedded } = this;
    const { directUrl, url } = this.options;
    const options = { ...this.options, url: directUrl ?? url };
    return this.exclusively(async (assertHeld) => {
      const applied = await applyMigrations({ options, model, embedded, assertHeld, patience });
      if (directUrl && (await this.pending()).length > 0) {
        throw new Error('DATABASE_DIRECT_URL has been migrated, and is not the database that DATABASE_URL leads to.');
      }
      await advanceCounters(this.primary.ask, this.orm, this.options.log).catch((error) => {
        throw isUnmigrated(error) ? lacksMigration(error) : error;
      });
      return applied;
    });
  }

  /** The names of the migrations that the database lacks. @throws StoreError SERVICE_UNAVAILABLE */
  pending(): Promise<string[]> {
    return pendingMigrations(this.primary, this.model);
  }

  /**
   * Used at start: waits while the embedded store changes owner.
   *
   * @throws StoreError SERVICE_UNAVAILABLE, also for a node of Citus that takes no writes
   */
  async reach(): Promise<void> {
    if (this.isEmbedded) return whileItMoves(() => this.ping());
    // https://docs.citusdata.com/en/stable/develop/api_metadata.html: the coordinator's group is 0. Ids of a worker would
    // not ascend: its sequences begin at 281474976710657.
    const text = 'select groupid from pg_catalog.pg_dist_local_group';
    const group = await this.#askCitus({ name: 'citus_group', text }, []);
    if (group === undefined || group === '0') return;
    throw tryAgain('DATABASE_URL names a worker of a Citus cluster; it has to name the coordinator.');
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  async ping(): Promise<void> {
    await this.checks.rows({ name: 'ping', text: 'select 1' }, []);
  }

  /** Checks that the database is reachable, writable, migrated and not stuck. @throws StoreError SERVICE_UNAVAILABLE */
  async assertReady(): Promise<void> {
    if (this.#queues.some(({ isStuck }) => isStuck))
      throw tryAgain('Requests queued for the database are not making progress.');
    const renew = () => {
      // The way to the primary may lead to another server by now.
      for (const server of [this.primary, this.checks]) server.renew();
    };
    await assertServable(this.orm, this.checks, this.model, renew).catch(async (error) => {
      // A worker of Citus has no table of migrations.
      if (isUnmigrated(error)) await this.reach();
      throw error;
    });
  }

  async close(): Promise<void> {
    await this.replicas?.close();
    await this.checks.pool.end();
    await endPool(this.orm, this.primary.pool);
    await this.embedded?.close();
  }

  /**
   * Runs work that only one process at a time may do to this database.
   *
   * Advisory locks do not work on the embedded store, and file locks do not work between machines: each is used where
   * it works.
   */
  async exclusively<T>(work: (assertHeld: AssertHeld) => Promise<T>): Promise<T> {
    if (this.embedded) {
      const release = await this.embedded.exclude(60_000);
      if (!release) throw new Error('Another process has been preparing the embedded store for a minute.');
      // A process holds a file for as long as it lives.
      return whileItMoves(() => work(async () => undefined)).finally(release);
    }
    return this.withSession((holder) => exclusivelyIn(holder, this.options.log, work));
  }

  /** Runs work in a session outside the pool, and without a pooler where possible: no silence of the server ends it. */
  async withSession<T>(work: (session: Client) => Promise<T>): Promise<T> {
    const { directUrl } = this.options;
    const { config } = directUrl
      ? await findSessions(directUrl, this.options).catch((error) => {
          throw new Error(`The database (DATABASE_DIRECT_URL) cannot be reached: ${error.message}`, { cause: error });
        })
      : this.sessions;
    const session = new Client({ ...config, stream: undefined });
    // A statement reports the error of a connection that breaks.
    session.on('error', () => undefined);
    try {
      await session.connect();
      return await work(session);
    } finally {
      await session.end();
    }
  }
}

/** Retries work that failed because the owner of the embedded store has ended; this process or another takes over. */
function whileItMoves<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + 30_000;
  return retry(work, {
    pause: () => 100,
    isWorthIt: (error) =>
      performance.now() <= giveUpAt && (error instanceof StoreError || unavailable(error) !== undefined),
  });
}
