import { tryAgain } from '../../errors.ts';
import type { PoolState } from '../../runtime/telemetry/observers.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { Rows, Statement } from '../records/sql.ts';
import { findSessions, poolWith, sessionsTo } from './connections.ts';
import { isWorthAnotherServer } from './errors.ts';
import type { DatabaseOptions } from './options.ts';
import { Server } from './server.ts';

/** How long (ms) a server may take to open a session or to report its position. */
const timeoutMs = 1000;
/** How long (ms) a node is left alone while it lacks something that this process has written or shown. */
const restWhenBehind = 5;
/** How long (ms) it is left alone when it cannot be used: twice as long each time. */
const restWhenUnfit = { shortest: 250, longest: 10_000 };

/** Which server this is, and how far its write-ahead log goes: what it has written, or replayed when it is a replica. */
interface Position {
  isReplica: boolean;
  /** The same for all copies of a server. */
  system: string;
  database: string;
  /** One more after each promotion. A replica's may be less than it is, until its next restart point. */
  timeline: number;
  bytes: number;
  /** How late (ms) what a replica shows may be. */
  lag: number;
}

// Only a role with the right to read all statistics sees received_tli; for others a replica's timeline is known later.
// A replica that has replayed all that it has received, and is still receiving, is up to date however old its last
// transaction is. Its clock is compared with the primary's only while it has something to catch up with.
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

/** A server that answers reads, and what is known of it. */
interface ReadNode {
  /** Host and port, for the log. */
  readonly name: string;
  readonly server: Server;
  /** Why it cannot be used; empty when it can, and undefined before its first answer. */
  trouble: string | undefined;
  restsUntil: number;
  /** How long (ms) it rests when it cannot be used the next time. */
  rest: number;
}

/**
 * The servers that answer reads. Each read asks its node for its position, before and after, in the same round trip.
 * PostgreSQL takes the snapshot of a statement before it evaluates any of it, so a statement cannot say whether its own
 * snapshot is fresh enough. Nodes in trouble are asked again on the side, and only while clients read.
 */
export class Replicas {
  readonly #nodes: ReadNode[];
  /** What a replica must have replayed: all that this process has written, and all that a replica has shown to it. */
  #floor: Position | undefined;
  /** False while the floor lacks a write of this process. */
  #isComplete = false;
  #writes = 0;
  #isLearning = false;
  #next = 0;

  constructor(
    urls: string[],
    private readonly primary: Server,
    private readonly options: DatabaseOptions,
  ) {
    this.#nodes = urls.map((url) => this.#open(url));
    primary.onWrite = (session) => this.#wrote(session);
  }

  get pools(): PoolState[] {
    return this.#nodes.map(({ name, server }) => server.state(name));
  }

  /**
   * Runs a statement that only reads on a node that has all that it must have.
   *
   * @param sentTo is called with the name of each node that is asked
   * @returns undefined when the primary has to answer
   * @throws the error of a node, when another server would fail in the same way
   */
  async read<Row extends unknown[]>(
    statement: Statement,
    values: unknown[],
    sentTo: (node: string) => void,
  ): Promise<Row[] | undefined> {
    const floor = this.#floor;
    if (!floor || !this.#isComplete) {
      void this.#learn();
      return undefined;
    }
    this.#next += 1;
    for (let at = 0; at < this.#nodes.length; at += 1) {
      const node = this.#nodes[(this.#next + at) % this.#nodes.length] as ReadNode;
      if (node.restsUntil > performance.now()) continue;
      if (node.trouble !== '') void this.#probe(node, floor);
      else {
        sentTo(node.name);
        const rows = await this.#readOn(node, statement, values, floor);
        if (rows) return rows as Row[];
      }
    }
    return undefined;
  }

  async #readOn(node: ReadNode, statement: Statement, values: unknown[], floor: Position) {
    const { statementTimeout } = this.options;
    const limit = statementTimeout > 0 ? statementTimeout / 4 : 60_000;
    try {
      const answers = node.server.together([
        [position, []],
        [statement, values],
        [replayed, []],
      ]);
      const [before = [], rows, after] = await withTimeout(limit, answers, () =>
        tryAgain(`It has not answered a read within ${limit} ms.`),
      );
      const seen = parsePosition(before);
      if (!this.#judge(node, seen, floor)) return undefined;
      if (seen.system === floor.system) this.#shown(Number(after?.[0]?.[0]));
      return rows;
    } catch (error) {
      if (!isWorthAnotherServer(error)) throw error;
      node.server.cut();
      // Of several reads that fail together the first one has noted it.
      if (node.trouble === '') this.#note(node, reasonOf(error));
      return undefined;
    }
  }

  /** Asks a node for its position, while the primary answers. */
  async #probe(node: ReadNode, floor: Position): Promise<void> {
    node.restsUntil = Number.POSITIVE_INFINITY;
    try {
      const seen = await positionOf(node.server.ask);
      node.restsUntil = 0;
      this.#judge(node, seen, floor);
    } catch (error) {
      node.server.cut();
      this.#note(node, reasonOf(error));
    }
  }

  /** @returns whether the node may answer a read that needs all up to `floor` */
  #judge(node: ReadNode, seen: Position, floor: Position): boolean {
    const trouble = this.#troubleOf(seen, floor);
    // The primary may be another server by now.
    if (trouble) void this.#learn();
    this.#note(node, trouble);
    const isBehind = !trouble && seen.system === floor.system && seen.bytes < floor.bytes;
    if (isBehind) node.restsUntil = performance.now() + restWhenBehind;
    return !trouble && !isBehind;
  }

  /** Why a node cannot be used, even for a process that has written nothing; empty when it can. */
  #troubleOf(seen: Position, floor: Position): string {
    // Another system is no copy: a node of a distributed engine, which is up to date by itself.
    if (seen.system !== floor.system) return seen.isReplica ? 'it is a replica of another server' : '';
    if (seen.database !== floor.database) return 'it is another database';
    if (!seen.isReplica) return 'it has been promoted: it does not follow the primary';
    if (seen.timeline < floor.timeline) return 'it has not followed the last promotion yet';
    if (seen.timeline > floor.timeline) return 'it follows a promotion that the primary has not had';
    return seen.lag < (this.options.readMaxLag ?? 1000) ? '' : 'it is too far behind the primary';
  }

  #note(node: ReadNode, trouble: string): void {
    if (trouble) node.restsUntil = performance.now() + node.rest;
    node.rest = trouble ? Math.min(2 * node.rest, restWhenUnfit.longest) : restWhenUnfit.shortest;
    if (trouble === node.trouble) return;
    node.trouble = trouble;
    if (trouble) this.options.log?.warn({ node: node.name, why: trouble }, 'a read node is not used');
    else this.options.log?.info({ node: node.name }, 'a read node is used');
  }

  /** No later read may be answered by a replica that has replayed less. */
  #shown(bytes: number): void {
    if (this.#floor && bytes > this.#floor.bytes) this.#floor = { ...this.#floor, bytes };
  }

  /** @param session the one that wrote; undefined when it is unknown whether anything was written */
  async #wrote(session: Rows | undefined): Promise<void> {
    this.#writes += 1;
    this.#isComplete = false;
    if (session) await this.#learn(session);
    else this.primary.renew();
  }

  /** Asks the primary where its log ends: all that was written before is up to there. */
  async #learn(session?: Rows): Promise<void> {
    if (this.#isLearning && !session) return;
    const writes = this.#writes;
    this.#isLearning = true;
    const seen = await positionOf(session ?? this.primary.ask).catch(() => undefined);
    this.#isLearning = false;
    const floor = this.#floor;
    // The way to the primary may lead to another server by now.
    if (seen && (seen.isReplica || seen.timeline < (floor?.timeline ?? 0))) return this.primary.renew();
    if (!seen || writes !== this.#writes) return;
    const isSame = floor?.system === seen.system && floor.timeline === seen.timeline;
    // Where nothing is missing, the primary's position would keep all replicas from answering until they have caught up.
    if (!isSame || !this.#isComplete) this.#floor = seen;
    this.#isComplete = true;
  }

  #open(url: string): ReadNode {
    const limits = { ...this.options, connectTimeout: Math.min(this.options.connectTimeout, timeoutMs) };
    const name = new URL(url).host;
    const find = async () => {
      const sessions = await findSessions(url, limits);
      const message = 'a pooler drops session settings: set them on the role';
      if (sessions.advice) this.options.log?.warn({ node: name, statements: sessions.advice }, message);
      return sessions;
    };
    const sessions = sessionsTo(url, limits);
    const pool = poolWith({ ...sessions.config, pipeline: true, max: this.options.poolMax });
    const server = new Server(pool, { ...sessions, find });
    return { name, server, trouble: undefined, restsUntil: 0, rest: restWhenUnfit.shortest };
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

async function positionOf(rows: Rows): Promise<Position> {
  const late = () => tryAgain(`It has not answered within ${timeoutMs} ms.`);
  return parsePosition(await withTimeout(timeoutMs, rows(position, []), late));
}

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
 * A primary names the place of its next record, which may be behind the header of a page: 24 bytes, or 40. A replica
 * names the end of the last record, before that header. No record ends between the two.
 */
function endOfRecord(bytes: number): number {
  const inPage = bytes % 8192;
  return inPage === 24 || inPage === 40 ? bytes - inPage : bytes;
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
