import { MikroORM } from '@mikro-orm/postgresql';
import { Client, type ClientConfig } from 'pg';
import { StoreError, tryAgain } from '../../errors.ts';
import { retry } from '../../runtime/retry.ts';
import type { PoolState, QueueState } from '../../runtime/telemetry/observers.ts';
import { Batches, type BatchOptions, type Run } from '../records/batches.ts';
import type { Statement } from '../records/sql.ts';
import { advanceCounters } from './counters.ts';
import { type EmbeddedPostgres, openEmbedded } from './embedded.ts';
import { isUnmigrated, unavailable } from './errors.ts';
import { type AssertHeld, exclusivelyOn } from './exclusive.ts';
import { applyMigrations, lacksMigration, migrationPatience } from './migrations.ts';
import { type DatabaseOptions, type Model, ormOptions } from './options.ts';
import { endPool, poolOf, poolWith, stateOfPool } from './pool.ts';
import { assertServable, citusNode, isWorkerOfCitus, pendingMigrations } from './readiness.ts';
import { Replicas } from './replicas.ts';
import { Server } from './server.ts';
import { findSessions, type Sessions, sessionsFor } from './sessions.ts';

/** PostgreSQL through MikroORM: entities and migrations. The statements of hot paths use the same connection pool. */
export class Database {
  #isCluster = false;
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
    const primary = new Server(await poolOf(orm), { ...sessions, log: options.log });
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

  /** True for a table that is spread over several nodes, each of which has a snapshot of its own. */
  async isSharded(table: string): Promise<boolean> {
    const text = `
      select exists (select from pg_catalog.pg_dist_partition
        where logicalrelid = to_regclass(quote_ident($1)) and partmethod = 'h')`;
    const [[isSharded] = []] = await this.rows<[string]>({ name: 'is_sharded', text }, [table]);
    return isSharded === 't';
  }

  /** True where tables may be spread over several nodes; known after `reach`. */
  get isCluster(): boolean {
    return this.#isCluster;
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
    return [stateOfPool('primary', this.primary.pool), ...(this.replicas?.pools ?? [])];
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
    const applied = await this.exclusively((assertHeld) =>
      applyMigrations({ options, model, embedded, assertHeld, patience }),
    );
    if (directUrl && (await this.pending()).length > 0) {
      throw new Error('DATABASE_DIRECT_URL has been migrated, and is not the database that DATABASE_URL leads to.');
    }
    await advanceCounters(this.primary.ask, this.orm, this.options.log).catch((error) => {
      throw isUnmigrated(error) ? lacksMigration(error, model) : error;
    });
    return applied;
  }

  /** The names of the migrations that the database lacks. @throws StoreError SERVICE_UNAVAILABLE */
  pending(): Promise<string[]> {
    return pendingMigrations(this.primary, this.model);
  }

  /**
   * Used at start: waits while the embedded store changes owner.
   *
   * @throws StoreError SERVICE_UNAVAILABLE; Error when this is a node that takes no writes
   */
  async reach(): Promise<void> {
    if (this.isEmbedded) return whileItMoves(() => this.ping());
    const node = await citusNode(this.primary.ask);
    if (node === 'worker') throw new Error(isWorkerOfCitus);
    this.#isCluster = node === 'coordinator';
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  async ping(): Promise<void> {
    await this.checks.rows({ name: 'ping', text: 'select 1' }, []);
  }

  /** Checks that the database is reachable, writable, migrated and not stuck. @throws StoreError SERVICE_UNAVAILABLE */
  async assertReady(): Promise<void> {
    if (this.#queues.some(({ isStuck }) => isStuck))
      throw tryAgain('Requests queued for the database are not making progress.');
    await assertServable(this.orm, this.checks, this.model, () => this.primary.renew());
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
    // A connection outside the pool, which waits without a timeout.
    return exclusivelyOn({ ...(await this.#direct()), stream: undefined }, this.options.log, work);
  }

  /** Runs work in a session outside the pool, on whole tables for instance: no silence of the server ends it. */
  async withSession<T>(work: (session: Client) => Promise<T>): Promise<T> {
    const session = new Client({ ...(await this.#direct()), stream: undefined });
    // A statement reports the error of a connection that breaks.
    session.on('error', () => undefined);
    try {
      await session.connect();
      return await work(session);
    } finally {
      await session.end();
    }
  }

  /** How to reach the database without a pooler in between, if there is one. */
  async #direct(): Promise<ClientConfig> {
    const { directUrl } = this.options;
    if (!directUrl) return this.sessions.config;
    try {
      return (await findSessions(directUrl, this.options)).config;
    } catch (cause) {
      const why = (cause as Error).message;
      throw new Error(`The database past the pooler (DATABASE_DIRECT_URL) cannot be reached: ${why}`, { cause });
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
