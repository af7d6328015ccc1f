import { setTimeout as sleep } from 'node:timers/promises';
import { MikroORM } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import { StoreError, tryAgain } from '../../errors.ts';
import type { PoolState, QueueState } from '../../runtime/telemetry/observers.ts';
import { Batches, type BatchOptions, type Run } from '../records/batches.ts';
import type { Rows, Statement } from '../records/statement.ts';
import { citusNode, isWorkerOfCitus } from './citus.ts';
import { advanceCounters } from './counters.ts';
import { type EmbeddedPostgres, openEmbedded } from './embedded.ts';
import { isWorthAnotherServer, unavailable } from './errors.ts';
import { type AssertHeld, exclusivelyOn } from './exclusive.ts';
import { applyMigrations, migrationPatience } from './migrations.ts';
import { type DatabaseOptions, type Model, ormOptions } from './options.ts';
import { endPool, poolOf, stateOfPool } from './pool.ts';
import { ReadNodes } from './read-nodes.ts';
import { assertServable, pendingMigrations } from './readiness.ts';
import { Server } from './server.ts';
import { findSessions, type Sessions, sessionsFor } from './sessions.ts';

/** PostgreSQL through MikroORM: entities and migrations. The statements of hot paths use the same connection pool. */
export class Database {
  readonly #queues: Array<{ isStuck: boolean; state: QueueState }> = [];

  private constructor(
    readonly orm: MikroORM,
    private readonly primary: Server,
    private readonly readNodes: ReadNodes | undefined,
    private readonly sessions: Sessions,
    private readonly options: DatabaseOptions,
    private readonly model: Model,
    private readonly embedded: EmbeddedPostgres | undefined,
  ) {}

  /** Opens the embedded store, or creates the pool for a PostgreSQL that need not be reachable yet. */
  static async open(options: DatabaseOptions, model: Model): Promise<Database> {
    const embedded = options.url ? undefined : await openEmbedded(options);
    const sessions = await sessionsFor(options, embedded);
    const orm = new MikroORM(ormOptions(options, model, sessions.config));
    const primary = new Server(await poolOf(orm), { ...sessions, log: options.log });
    const readNodes = options.readUrls && new ReadNodes(options.readUrls, primary, sessions, options);
    return new Database(orm, primary, readNodes, sessions, options, model, embedded);
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
   * The same for a statement that only reads: on a read node that has all that this process has written, if there is
   * one.
   *
   * @param servedBy is told the name of the node, where there are read nodes
   */
  read<Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
    servedBy: (node: string) => void = () => undefined,
  ): Promise<Row[]> {
    return this.readNodes ? this.#readOn(this.readNodes, statement, values, servedBy) : this.rows(statement, values);
  }

  async #readOn<Row extends unknown[]>(
    nodes: ReadNodes,
    statement: Statement,
    values: unknown[],
    servedBy: (node: string) => void,
  ): Promise<Row[]> {
    const node = nodes.pick();
    const sentTo = (name: string) => {
      servedBy(name);
      for (const observer of this.options.observers ?? []) observer.readOn?.(name);
    };
    if (node) {
      sentTo(node.name);
      try {
        return await node.read<Row>(statement, values);
      } catch (error) {
        if (!isWorthAnotherServer(error)) throw error;
      }
    }
    sentTo('primary');
    return this.rows<Row>(statement, values);
  }

  /**
   * Runs reads in one transaction: they see the database at one moment. On the embedded store everybody else waits for
   * its end.
   */
  snapshot<T>(read: (rows: Rows) => Promise<T>): Promise<T> {
    return this.primary.snapshot(read);
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
    return [stateOfPool('primary', this.primary.pool), ...(this.readNodes?.pools ?? [])];
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
    await advanceCounters(this.primary.ask, this.orm, this.options.log);
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
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  async ping(): Promise<void> {
    await this.rows({ name: 'ping', text: 'select 1' }, []);
  }

  /** Checks that the database is reachable, writable, migrated and not stuck. @throws StoreError SERVICE_UNAVAILABLE */
  async assertReady(): Promise<void> {
    if (this.#queues.some(({ isStuck }) => isStuck)) throw tryAgain('What waits for the database does not get on.');
    await assertServable(this.orm, this.primary, this.model);
  }

  async close(): Promise<void> {
    await this.readNodes?.close();
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
async function whileItMoves<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + 30_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const moves = error instanceof StoreError || unavailable(error);
      if (!moves || performance.now() > giveUpAt) throw error;
      await sleep(100);
    }
  }
}
