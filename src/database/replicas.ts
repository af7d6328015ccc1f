import { withTimeout } from '../runtime/with-timeout.ts';
import type { DatabaseOptions } from './options.ts';
import { DatabaseUnavailable, isConflict, isWorthAnotherServer } from './postgres-errors.ts';
import { type PoolState, PostgresServer, type RunStatement, type Statement } from './postgres-server.ts';
import { createPool, detectSessions, sessionsTo } from './sessions.ts';

/** How long (ms) a server may take to open a session or to report its position. */
const timeoutMs = 1000;
/** How long (ms) a node is not asked while it lacks a write that this process has made or shown. */
const pauseWhenBehind = 5;
/** How long (ms) an unusable node is not asked; the pause doubles each time. */
const pauseWhenUnusable = { shortest: 250, longest: 10_000 };

/** A server's identity, and its position in the write-ahead log: written on a primary, replayed on a replica. */
interface Position {
  isReplica: boolean;
  /** The same for all copies of a server. */
  system: string;
  database: string;
  /** Increases by one at each promotion. A replica may report an older one until its next restart point. */
  timeline: number;
  bytes: number;
  /** Replication lag (ms). */
  lag: number;
}

// Only a role that may read all statistics sees received_tli; other roles learn a replica's timeline later. A replica
// that has replayed everything it received, and is still receiving, has no lag, however old its last transaction is.
// Only a replica that is catching up compares its clock with the primary's.
const position: Statement = {
  name: 'position',
  text: `
    select pg_is_in_recovery(), (select system_identifier from pg_control_system()),
      (select oid from pg_database where datname = current_database()),
      case when pg_is_in_recovery() then greatest(
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver))
        else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end,
      case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn,
      case when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() and exists (select from pg_stat_wal_receiver) then 0
        else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 end`,
};
const replayed: Statement = { name: 'replayed', text: `select pg_last_wal_replay_lsn() - '0/0'::pg_lsn` };

/** A server that answers reads, and its state. */
interface ReadNode {
  /** Host and port, for the log. */
  readonly name: string;
  readonly server: PostgresServer;
  /** Why it cannot be used; empty when it can, and undefined before its first answer. */
  problem: string | undefined;
  pausedUntil: number;
  /** The next pause (ms). */
  pause: number;
}

/**
 * The servers that answer reads. A read is sent with two queries of the node's replay position, in one round trip. The
 * query before the read proves that the node is fresh enough. The query after it tells how fresh later reads must be.
 * PostgreSQL takes a statement's snapshot before it evaluates the statement, so a statement cannot report whether its
 * own snapshot is fresh enough. Unusable nodes are probed in the background, and only while clients read.
 */
export class Replicas {
  readonly #nodes: ReadNode[];
  /** The position that a replica must have replayed: every write that this process has made or shown. */
  #leastPosition: Position | undefined;
  /** False while the least position lacks a write that this process has made or shown. */
  #isComplete = false;
  #writes = 0;
  #next = 0;

  constructor(
    urls: string[],
    private readonly primary: PostgresServer,
    private readonly options: DatabaseOptions,
  ) {
    this.#nodes = urls.map((url) => this.#open(url));
    primary.onWrite = (session) => this.#wrote(session);
  }

  get pools(): PoolState[] {
    return this.#nodes.map(({ name, server }) => server.state(name));
  }

  /**
   * Runs a statement that only reads, on a node that has replayed the least position, else on the primary.
   *
   * @param sentTo called with the name of each server that is asked
   * @throws the error of a node, when another server would fail in the same way
   */
  async read<Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
    sentTo: (node: string) => void,
  ): Promise<Row[]> {
    const least = this.#leastPosition;
    this.#next += 1;
    for (let at = 0; least && this.#isComplete && at < this.#nodes.length; at += 1) {
      const node = this.#nodes[(this.#next + at) % this.#nodes.length] as ReadNode;
      if (node.pausedUntil > performance.now()) continue;
      if (node.problem !== '') void this.#probe(node, least);
      else {
        sentTo(node.name);
        const rows = await this.#readOn(node, statement, values, least);
        if (rows) return rows as Row[];
      }
    }
    sentTo('primary');
    return (await this.#readOnPrimary(statement, values)) as Row[];
  }

  /** The query after the read tells how fresh later reads must be: what the primary has shown must not disappear. */
  async #readOnPrimary(statement: Statement, values: unknown[]) {
    const writes = this.#writes;
    try {
      const [rows = [], end = []] = await this.primary.readInOneSession([
        [statement, values],
        [position, []],
      ]);
      this.#cover(parsePosition(end), writes, true);
      return rows;
    } catch (error) {
      if (error instanceof DatabaseUnavailable && !isConflict(error)) throw error;
      // The role may not be allowed to query the position.
      const rows = await this.primary.rows(statement, values);
      this.#isComplete = false;
      return rows;
    }
  }

  async #readOn(node: ReadNode, statement: Statement, values: unknown[], least: Position) {
    const { statementTimeout } = this.options;
    const limit = statementTimeout > 0 ? statementTimeout / 4 : 60_000;
    try {
      const answers = node.server.readInOneSession([
        [position, []],
        [statement, values],
        [replayed, []],
      ]);
      const [before = [], rows, after] = await withTimeout(limit, answers, late('a read ', limit));
      const seen = parsePosition(before);
      if (!this.#check(node, seen, least)) return undefined;
      if (seen.system === least.system) this.#raiseLeastPosition(Number(after?.[0]?.[0]));
      return rows;
    } catch (error) {
      if (!isWorthAnotherServer(error)) throw error;
      node.server.cut();
      // When several reads fail together, only the first records it.
      if (node.problem === '') this.#note(node, reasonOf(error));
      return undefined;
    }
  }

  /** Queries a node's position while the primary answers reads. */
  async #probe(node: ReadNode, least: Position): Promise<void> {
    node.pausedUntil = Number.POSITIVE_INFINITY;
    try {
      const seen = await positionOf(node.server.rows);
      node.pausedUntil = 0;
      this.#check(node, seen, least);
    } catch (error) {
      node.server.cut();
      this.#note(node, reasonOf(error));
    }
  }

  /** @returns whether the node may answer a read that needs the least position */
  #check(node: ReadNode, seen: Position, least: Position): boolean {
    const problem = this.#problemOf(seen, least);
    // The primary may have changed.
    if (problem) void this.#updateLeastPosition();
    this.#note(node, problem);
    const isBehind = !problem && seen.system === least.system && seen.bytes < least.bytes;
    if (isBehind) node.pausedUntil = performance.now() + pauseWhenBehind;
    return !problem && !isBehind;
  }

  /** Why a node cannot be used, even by a process that has written nothing; empty when it can. */
  #problemOf(seen: Position, least: Position): string {
    // A primary with another system identifier is a node of a distributed engine, which is always up to date.
    if (seen.system !== least.system) return seen.isReplica ? 'it is a replica of another server' : '';
    if (seen.database !== least.database) return 'it is another database';
    if (!seen.isReplica) return 'it has been promoted: it does not follow the primary';
    if (seen.timeline < least.timeline) return 'it has not followed the last promotion yet';
    if (seen.timeline > least.timeline) return 'it follows a promotion that the primary has not had';
    return seen.lag < this.options.readMaxLag ? '' : 'it is too far behind the primary';
  }

  #note(node: ReadNode, problem: string): void {
    if (problem) node.pausedUntil = performance.now() + node.pause;
    node.pause = problem ? Math.min(2 * node.pause, pauseWhenUnusable.longest) : pauseWhenUnusable.shortest;
    if (problem === node.problem) return;
    node.problem = problem;
    if (problem) this.options.log?.warn({ node: node.name, why: problem }, 'a read node is not used');
    else this.options.log?.info({ node: node.name }, 'a read node is used');
  }

  /** Excludes replicas that have replayed less from later reads. */
  #raiseLeastPosition(bytes: number): void {
    const least = this.#leastPosition;
    if (least && bytes > least.bytes) this.#leastPosition = { ...least, bytes };
  }

  /** @param session the session that wrote; undefined when the outcome of the write is unknown */
  async #wrote(session: RunStatement | undefined): Promise<void> {
    this.#writes += 1;
    this.#isComplete = false;
    if (session) await this.#updateLeastPosition(session);
    else this.primary.renew();
  }

  /** Queries the end of the primary's log, which covers all earlier writes. */
  async #updateLeastPosition(session?: RunStatement): Promise<void> {
    const writes = this.#writes;
    const end = await positionOf(session ?? this.primary.rows).catch(() => undefined);
    if (end) this.#cover(end, writes, session !== undefined);
  }

  /** @param isNeeded whether something was written or shown before the primary reported this position */
  #cover(end: Position, writes: number, isNeeded: boolean): void {
    const least = this.#leastPosition;
    // The primary's address may now lead to another server.
    if (end.isReplica || end.timeline < (least?.timeline ?? 0)) {
      this.primary.renew();
      return;
    }
    if (least?.system !== end.system || least.timeline !== end.timeline) this.#leastPosition = end;
    // Not unless needed: no replica may have reached it yet.
    else if (isNeeded || !this.#isComplete) this.#raiseLeastPosition(end.bytes);
    this.#isComplete ||= writes === this.#writes;
  }

  #open(url: string): ReadNode {
    const limits = { ...this.options, connectTimeout: Math.min(this.options.connectTimeout, timeoutMs) };
    const name = new URL(url).host;
    const detect = async () => {
      const sessions = await detectSessions(url, limits);
      const message = 'a pooler drops session settings: set them on the role';
      if (sessions.advice) this.options.log?.warn({ node: name, statements: sessions.advice }, message);
      return sessions;
    };
    const sessions = sessionsTo(url, limits);
    const pool = createPool({ ...sessions.config, pipeline: true, max: this.options.poolMax });
    const server = new PostgresServer(pool, { ...sessions, detect });
    return { name, server, problem: undefined, pausedUntil: 0, pause: pauseWhenUnusable.shortest };
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#nodes.map(({ server }) => {
        server.cut();
        return server.pool.end();
      }),
    );
  }
}

async function positionOf(rows: RunStatement): Promise<Position> {
  return parsePosition(await withTimeout(timeoutMs, rows(position, []), late('', timeoutMs)));
}

const late = (to: string, milliseconds: number) => () =>
  new DatabaseUnavailable(`It has not answered ${to}within ${milliseconds} ms.`);

function parsePosition([row = []]: Array<Array<string | null>>): Position {
  const [isReplica, system, database, timeline, bytes, lag] = row;
  return {
    isReplica: isReplica === 't',
    system: `${system}`,
    database: `${database}`,
    timeline: Number(timeline),
    bytes: endOfRecord(Number(bytes ?? -1)),
    lag: Number(lag ?? 0),
  };
}

/**
 * A primary reports where its next record starts, which may follow a page header of 24 or 40 bytes. A replica reports
 * where its last record ends, before that header. No record ends between the two.
 */
function endOfRecord(bytes: number): number {
  const inPage = bytes % 8192;
  return inPage === 24 || inPage === 40 ? bytes - inPage : bytes;
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
