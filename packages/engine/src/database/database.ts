import type { EntityName } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { Client } from 'pg';
import { type Call, openTransaction } from '../call.ts';
import { Unavailable } from '../errors.ts';
import {
  Batches,
  type BatchOptions,
  maxWaiting,
  type QueueName,
  type QueueState,
  type RunBatch,
} from './batches.ts';
import { assertColumns } from './columns.ts';
import { examine } from './examination.ts';
import { answerOnce, ClaimedWork, safeToRepeat } from './idempotency.ts';
import {
  localeDifference,
  localeRemedy,
  otherLocale,
  sortsTexts,
} from './locale.ts';
import {
  type AssertHeld,
  applyMigrations,
  exclusivelyIn,
  migrationRetries,
} from './migrations.ts';

import {
  type DatabaseOptions,
  type Model,
  type OpenStore,
  ormOptions,
} from './options.ts';
import type { RowOrder } from './order.ts';
import { causeOf, isOutcomeUnknown, isUnmigrated } from './postgres-errors.ts';

import {
  createPool,
  endPool,
  PostgresServer,
  poolOf,
  type Send,
  type Statement,
} from './postgres-server.ts';
import {
  advanceCounters,
  assertServable,
  pendingMigrations,
} from './readiness.ts';
import type { OpenReads, Reads } from './reads.ts';
import { Sessions } from './sessions.ts';
import { TableShares } from './table-shares.ts';
import {
  type Frame,
  nestedTransaction,
  refusalIn,
  Transaction,
  type Work,
} from './transaction.ts';
import { withTimeout } from './with-timeout.ts';

export type {
  Batches,
  DatabaseObserver,
  QueueState,
} from './batches.ts';
export type { DatabaseOptions, Model, OwnStore } from './options.ts';
export type { Statement } from './postgres-server.ts';

const hasCitus = `
  select to_regclass('pg_catalog.pg_dist_partition') is not null`;

const ping = { name: 'ping', text: 'select 1' };

/** The transaction in which this code runs. */
export const currentTransaction = () =>
  openTransaction.getStore() as Transaction | undefined;

/** What collections that leave a trace have changed (`records/trace.ts`). */
export const changeTable = 'change';

/** Who sees changes: those whose member `by` is this. */
export interface ChangeReader {
  readonly by: 'audience' | 'reader';
  readonly name: string;
}

export interface TracedCollection {
  readonly table: string;
  /**
   * As whom a call sees changes; undefined for those of all owners.
   *
   * @param named members of rows that it must see
   */
  readersOf(call: Call, named: string[]): ChangeReader[] | undefined;
  /** The members that the call does not see in the row as it was. */
  hiddenFrom(change: Record<string, unknown>, call: Call): string[];
  /**
   * What a change is for a call. A row that is handed over is removed for whom
   * it leaves, and added for whom it comes to.
   *
   * @returns undefined for a caller of all rows where it repeats another one
   */
  eventFor(change: Record<string, unknown>, call: Call): string | undefined;
  /** Converts stored values to those of an answer, if they differ. */
  shown: ((values: Record<string, unknown>) => object) | undefined;
}

/** The commit that `inTransaction` still sends has nothing to do. */
async function rollBack(send: Send) {
  await send({ text: 'set constraints all immediate' });
  await send({ text: 'rollback' });
}

/** Each holds a connection. */
const oneByOne = { maxBatch: 1, maxInFlight: 4, blockTime: 1000 };
const transactions = {
  isWrite: true,
  maxInFlight: 16,
  part: 2,
  collection: 'transaction',
  operation: 'run',
};
const readings = { collection: 'entities', operation: 'read' };
type Run = () => Promise<unknown>;
const runEach = (batch: Run[]) => Promise.all(batch.map((run) => run()));

interface Referred {
  /**
   * SQL for the rows of which a call sees a member; undefined for all.
   *
   * @throws StoreError FORBIDDEN when it sees it of none
   */
  showing(
    member: string,
    call: Call,
    parameter: (value: string) => string,
  ): string | undefined;
  /** An item of any owner, as the primary has it. */
  stored(id: unknown, call: Call): Promise<object | null>;
}

/**
 * PostgreSQL through MikroORM for entities and migrations. Hot-path statements
 * use the same connection pool.
 */
export class Database {
  #hasCitus: string | undefined;
  readonly #turns = new Map<string, Batches<Run, unknown>>();
  readonly #shares: TableShares;
  /**
   * Whether a call may refer to a row, in a row of a tenant if any, by tables
   * whose rows belong to callers.
   */
  readonly owned = new Map<
    string,
    (id: unknown, call: Call, tenant: unknown) => Promise<boolean>
  >();
  /** The collections of tables, for those whose rows refer to theirs. */
  readonly referred = new Map<string, Referred>();
  readonly claimed = new ClaimedWork();
  /** Collections of tenants. */
  readonly tenanted = new Set<string>();
  /** The tables that live lists follow. */
  readonly followed = new Map<string, RowOrder>();
  /** The members that some callers do not see, by tables. */
  readonly hiding = new Map<string, readonly string[]>();
  /** Collections that leave a trace, by their names. */
  readonly traced = new Map<string, TracedCollection>();
  /** Called after each change that leaves a trace. */
  readonly onTraced = new Set<() => void>();
  /** Follows the changes of collections that leave a trace. */
  followChanges:
    | ((query: never, call: Call) => AsyncGenerator<unknown, void>)
    | undefined;
  /** Subscribes endpoints of hosts to events (@animal-store/openapi-mcp). */
  subscriptions: object | undefined;
  readonly #queues: Array<{ state: QueueState }> = [];

  private constructor(
    readonly orm: MikroORM,
    private readonly primary: PostgresServer,
    /** One connection for checks, so that they do not queue behind requests. */
    private readonly checks: PostgresServer,
    private readonly reads: Reads | undefined,
    private readonly sessions: Sessions,
    private readonly options: DatabaseOptions,
    readonly model: Model,
    /** Undefined for a server that others run. */
    readonly own: OpenStore | undefined,
  ) {
    this.#shares = new TableShares(options.poolMax);
  }

  /**
   * Opens the own store, or creates the pool for a PostgreSQL that need not be
   * reachable yet.
   *
   * @param openReads answers reads in place of the primary
   */
  static async open(
    given: DatabaseOptions,
    model: Model,
    openReads?: OpenReads,
  ) {
    const { own, options } = await withAddress(given);
    const sessions = new Sessions(options);
    // A read and the query of the primary's position share a round trip.
    const pipeline = openReads !== undefined;
    const connection = { ...sessions.config, pipeline };
    const openOrm = async () =>
      new MikroORM(ormOptions(options, model, connection));
    const orm = await openOrm().catch(async (error) => {
      // MikroORM refuses an entity. The own store would keep the process alive.
      await own?.close();
      throw error;
    });
    const pool = await poolOf(orm);
    const primary = new PostgresServer(pool, sessions, options.log);
    const reads = openReads?.(primary);
    const single = createPool({ ...sessions.config, max: 1 });
    const checks = new PostgresServer(single, sessions);
    return new Database(
      orm,
      primary,
      checks,
      reads,
      sessions,
      options,
      model,
      own,
    );
  }

  /**
   * Runs work on a database that is reachable, and closes it afterwards.
   * @throws Unavailable
   */
  static async use<T>(
    options: DatabaseOptions,
    model: Model,
    work: (database: Database) => Promise<T>,
  ) {
    const database = await Database.open(options, model);
    try {
      await database.assertReachable();
      return await work(database);
    } finally {
      await database.close();
    }
  }

  /**
   * Runs one statement on the primary. Those of a request wait in a queue
   * before (`batched`, `inTurn`).
   *
   * @returns rows as arrays in the order of the columns. Every value is the
   *   text that PostgreSQL sends, or null.
   * @throws Unavailable when PostgreSQL is unreachable or takes too
   *   long; else the driver's error.
   */
  rows<Row extends unknown[]>(statement: Statement, values: unknown[]) {
    const session = currentTransaction() ?? this.primary;
    return session.rows(statement, values) as Promise<Row[]>;
  }

  /**
   * Runs a statement that only reads, where every write is seen that this
   * process has made or shown.
   */
  read<Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
  ): Promise<Row[]> {
    if (!this.reads || currentTransaction())
      return this.rows(statement, values);
    return this.reads.read(statement, values) as Promise<Row[]>;
  }

  /**
   * Runs work in one transaction: what it does through services, `Records` and
   * its EntityManager is stored together or not at all; never for a trial. After
   * a conflict it runs again, so it has no other effects.
   *
   * @throws StoreError as `Records` does, Unavailable; any error rolls back
   * @example
   *   const creates = [VisitEntity, TreatmentEntity];
   *   database.transaction(call, { creates, input }, async () => {
   *     const visit = await visits.create(input.visit, call);
   *     await treatments.create({ visitId: visit.id, price }, call);
   *     return visit;
   *   });
   */
  async transaction<Answer>(
    call: Call,
    { creates, input }: Frame,
    work: Work<Answer>,
  ): Promise<Answer> {
    if (currentTransaction()) throw nestedTransaction();
    const { onRolledBack } = call;
    const isOnce = call.claim && !onRolledBack && creates.length > 0;
    if (isOnce && !input)
      throw new Error(
        'The transaction needs its `input` for an Idempotency-Key.',
      );
    const claim = input && !onRolledBack ? call.nextClaim() : undefined;
    const answerIn = (tx: Transaction) => {
      const doing = () => tx.run(work);
      if (!claim || !input) return doing();
      return answerOnce(tx.rows, call, claim, input, doing);
    };
    const attempt = async () => {
      // Rows that are rolled back become visible in no order.
      const tables = onRolledBack ? undefined : await this.#ordersOf(creates);
      const { answer, tx } = await this.primary.inTransaction(async (send) => {
        const tx = new Transaction(this.orm, tables, send);
        const left = call.deadline - performance.now();
        const answering = withTimeout(left, answerIn(tx), Unavailable.late);
        const answer = await answering.finally(() => tx.end());
        if (onRolledBack) await rollBack(send);
        return { answer, tx };
      });
      if (onRolledBack) onRolledBack();
      else for (const listener of tx.listeners) listener();
      return answer;
    };
    const run = () => this.inTurn(call, transactions, attempt);
    try {
      return await (claim ? this.claimed.inTurn(claim, call, run) : run());
    } catch (error) {
      if (onRolledBack && isOutcomeUnknown(error)) throw Unavailable.late();
      const refusal = refusalIn(this, error);
      throw claim ? safeToRepeat(refusal) : refusal;
    }
  }

  /** Citus shows rows shard by shard, so its lists need locks. */
  async #ordersOf(entities: readonly EntityName[]) {
    const orders = new Map<string, RowOrder | undefined>();
    for (const entity of entities) {
      const { tableName } = this.orm.getMetadata(entity);
      const isSharded = await this.isSharded(tableName);
      const order = isSharded ? 'locked' : this.followed.get(tableName);
      orders.set(tableName, order);
    }
    return orders;
  }

  /**
   * Runs work that only reads, with the EntityManager of the open transaction,
   * or else one that sends each statement by itself.
   *
   * @throws Unavailable
   */
  async reading<Answer>(call: Call, work: Work<Answer>) {
    const tx =
      currentTransaction() ??
      new Transaction(this.orm, new Map(), this.primary.send);
    const read = () =>
      work(tx.em).catch((error) => {
        throw tx.reasonOf(error);
      });
    return this.inTurn(call, readings, read);
  }

  /**
   * Runs work that holds a connection, in turn with that of other callers and
   * until the deadline of a call.
   */
  async inTurn<Answer>(
    call: Call,
    name: QueueName & Partial<typeof transactions>,
    run: () => Promise<Answer>,
  ) {
    const key = `${name.collection} ${name.operation}`;
    const known = this.#turns.get(key);
    const queue = known ?? this.batched(runEach, { ...oneByOne, ...name });
    this.#turns.set(key, queue);
    return (await queue.add(run, call)) as Answer;
  }

  /**
   * True for a table distributed over the nodes of a Citus cluster, where each
   * node takes its own snapshot.
   */
  async isSharded(table: string) {
    const text = `
      select exists (
        select from pg_catalog.pg_dist_partition
        where logicalrelid = to_regclass(quote_ident($1))
          and partmethod = 'h')`;
    return (await this.#askCitus('is_sharded', text, table)) === 't';
  }

  /** undefined without Citus, whose tables do not exist then. */
  async #askCitus(name: string, text: string, ...values: string[]) {
    this.#hasCitus ??= await this.#ask('has_citus', hasCitus);
    if (this.#hasCitus === 't') return this.#ask(name, text, ...values);
    return undefined;
  }

  async #ask(name: string, text: string, ...values: string[]) {
    const [row] = await this.rows<[string]>({ name, text }, values);
    return row?.[0];
  }

  /**
   * Creates the batches of a read or write. Their maximum waiting time follows
   * from the statement timeout.
   *
   * @param part how many of them would fill the pool
   */
  batched<In, Out>(
    run: RunBatch<In, Out>,
    {
      part = 3,
      ...options
    }: Omit<BatchOptions, 'maxWaiting' | 'maxAge' | 'observers'> & {
      part?: number;
    },
  ) {
    const maxAge = this.options.statementTimeout / 2;
    // A slow statement must leave connections for others of its table.
    const maxInFlight = Math.min(
      options.maxInFlight,
      Math.max(1, Math.floor(this.options.poolMax / part)),
    );
    const { observers = [] } = this.options;
    const judged: typeof run = (inputs) => {
      const outputs = run(inputs);
      if (currentTransaction()) return outputs;
      return outputs.catch((error) => this.#judge(error));
    };
    const batches = new Batches(judged, {
      ...options,
      share: (send) => this.#shares.use(options.collection, send),
      maxWaiting,
      maxAge,
      maxInFlight,
      observers,
    });
    this.#queues.push(batches);
    return batches;
  }

  /**
   * @throws the driver's error for a table or column that does not exist,
   *   although the database is migrated: the SQL is wrong
   */
  async #judge(error: unknown): Promise<never> {
    if (!isUnmigrated(error)) throw error;
    const pending = await assertColumns(this.checks.rows, this.orm)
      .then(() => pendingMigrations(this.checks, this.model))
      .catch(() => ['unknown']);
    throw pending.length > 0 ? error : causeOf(error);
  }

  get queues() {
    return this.#queues.map(({ state }) => state);
  }

  get hasReadNodes() {
    return this.reads !== undefined;
  }

  get pools() {
    return [this.primary.state('primary'), ...(this.reads?.pools ?? [])];
  }

  /**
   * Applies pending migrations, one node at a time (`migrations.ts`), and
   * advances counters that are behind their rows.
   *
   * @returns the names of those applied
   */
  async migrate(retries = migrationRetries) {
    const { directUrl, url } = this.options;
    return this.exclusively(async (assertHeld) => {
      const pending = await this.pending();
      const { schema } = this.sessions;
      const options = { ...this.options, url: directUrl ?? url };
      const migration = { ...options, retries, schema };
      const applied =
        pending.length > 0
          ? await applyMigrations(migration, this.model, pending, assertHeld)
          : [];
      if (directUrl && (await this.pending()).length > 0) {
        throw new Error(
          'DATABASE_DIRECT_URL has been migrated, but DATABASE_URL names another database.',
        );
      }
      await this.assertColumns();
      await advanceCounters(this.primary.rows, this.orm, this.options.log);
      return applied;
    });
  }

  /**
   * The names of the migrations that the database lacks.
   *
   * @throws Unavailable
   */
  pending() {
    return pendingMigrations(this.primary, this.model);
  }

  /**
   * Compares a migrated database with the entities.
   *
   * @throws Error that lists all differences
   */
  async assertColumns() {
    const { rows } = this.primary;
    await assertColumns(rows, this.orm);
    await this.#warnOfLocale();
  }

  /** Warns of a locale that decides how texts are sorted and found. */
  async #warnOfLocale() {
    const { log } = this.options;
    const difference = log && (await this.localeDifference());
    if (difference) log.warn({ difference, remedy: localeRemedy }, otherLocale);
  }

  /** @returns undefined where no list sorts texts, or as everywhere */
  async localeDifference() {
    if (!sortsTexts(this.orm)) return undefined;
    return localeDifference(this.primary.rows);
  }

  /**
   * Checks at start that the database is reachable, and takes all texts.
   *
   * @throws Unavailable, also for a Citus worker
   * @throws Error for another encoding
   */
  async assertReachable() {
    if (this.own) return this.own.retryInTakeover(() => this.ping());
    const asked = `select current_setting('server_encoding')`;
    const encoding = await this.#ask('encoding', asked);
    if (encoding !== 'UTF8') {
      const { host, port, database } = new Client(this.sessions.config);
      throw new Error(
        `The database ${host}:${port}/${database} (DATABASE_URL) is encoded in ${encoding}; it must be in UTF8. Create another one.`,
      );
    }
    // https://docs.citusdata.com/en/stable/develop/api_metadata.html: the
    // coordinator's group is 0. On a worker, ids would not ascend: its
    // sequences begin at 281474976710657.
    const text = 'select groupid from pg_catalog.pg_dist_local_group';
    const group = await this.#askCitus('citus_group', text);
    if (group === undefined || group === '0') return;
    throw new Unavailable(
      'DATABASE_URL names a worker of a Citus cluster; it must name the coordinator.',
    );
  }

  /** @throws Unavailable */
  async ping() {
    await this.checks.rows(ping, []);
  }

  /**
   * Checks that the database is reachable, writable and migrated, and that the
   * pool has a connection that works.
   *
   * @throws Unavailable
   */
  async assertReady() {
    await assertServable(this.orm, this.model, this.checks, this.primary).catch(
      async (error) => {
        // A Citus worker has no migrations table.
        if (isUnmigrated(error)) await this.assertReachable();
        throw error;
      },
    );
    await this.primary.rows(ping, []);
  }

  /** Examines what requests and background work need beyond readiness. */
  examine() {
    return examine(this.primary, this.orm);
  }

  async close() {
    await this.reads?.close();
    await this.checks.pool.end();
    await endPool(this.orm, this.primary.pool);
    await this.own?.close();
  }

  /**
   * Runs work that only one process at a time may do to this database.
   */
  async exclusively<T>(
    work: (assertHeld: AssertHeld) => Promise<T>,
  ): Promise<T> {
    const { own } = this;
    if (own) {
      const held = () => work(async () => undefined);
      return own.exclusively(() => own.retryInTakeover(held));
    }
    return this.withSession((holder) =>
      exclusivelyIn(holder, this.options, work),
    );
  }

  /**
   * Runs work in a session outside the pool, and without a pooler where
   * possible. The session has no silence timeout.
   */
  async withSession<T>(work: (session: Client) => Promise<T>) {
    const { directUrl } = this.options;
    const sessions = directUrl
      ? new Sessions({ ...this.options, url: directUrl })
      : this.sessions;
    const config = await sessions.detect().catch((error) => {
      if (!directUrl) throw error;
      throw new Error(
        `The database (DATABASE_DIRECT_URL) cannot be reached: ${error.message}`,
        { cause: error },
      );
    });
    const session = new Client({ ...config, stream: undefined });
    // The statement reports the error of a broken connection.
    session.on('error', () => undefined);
    try {
      await session.connect();
      return await work(session);
    } finally {
      await session.end();
    }
  }
}

/** Opens the own store, which has an address then. */
async function withAddress(options: DatabaseOptions) {
  const own = await options.ownStore?.open(options);
  return { own, options: { ...options, ...own?.options } };
}

/**
 * Options for MikroORM's command line, which then uses the same database as the
 * service.
 */
export async function ormOptionsFor(given: DatabaseOptions, model: Model) {
  const { own, options } = await withAddress(given);
  own?.closeAtEnd();
  const sessions = new Sessions(options);
  return ormOptions(options, model, await sessions.detect());
}
