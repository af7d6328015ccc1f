import { tryAgain } from '../../errors.ts';
import type { PoolState } from '../../runtime/telemetry/observers.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { Rows, Statement } from '../records/sql.ts';
import { isWorthAnotherServer } from './errors.ts';
import type { DatabaseOptions, Log } from './options.ts';
import { poolWith, stateOfPool } from './pool.ts';
import { Server } from './server.ts';
import { findSessions, sessionsTo } from './sessions.ts';
import { parsePosition, position, type WalPosition, walPositionOf } from './wal-position.ts';

/** How long (ms) a server may take to open a session or to say how far it is. */
const timeoutMs = 1000;
/** How long (ms) a node is left alone while it lacks something that this process has written or shown; doubled likewise. */
const restWhenBehind = { shortest: 2, longest: 64 };
/** How long (ms) it is left alone when it cannot be used: twice as long each time. */
const restWhenUnfit = { shortest: 250, longest: 10_000 };

/** A server that answers reads, and what is known of it. */
interface ReadNode {
  /** Host and port, for the log. */
  readonly name: string;
  readonly server: Server;
  /** What it said last; undefined while it cannot be used. */
  position: WalPosition | undefined;
  restsUntil: number;
  /** How long (ms) it rests next time: when it cannot be used, and when it is behind. */
  rest: number;
  restBehind: number;
  isProbed: boolean;
  /** Why it cannot be used, as it was logged; undefined before the first message. */
  reported: string | undefined;
}

const replayed: Statement = { name: 'replayed', text: `select pg_last_wal_replay_lsn() - '0/0'::pg_lsn` };

/**
 * The servers that answer reads. Each read asks its node how far it is, before and after, in the same round trip.
 * PostgreSQL takes the snapshot of a statement before it evaluates any of it, so a statement cannot say whether its own
 * snapshot is fresh enough. Nodes in trouble are asked again on the side, and only while clients read.
 */
export class Replicas {
  readonly #nodes: ReadNode[];
  readonly #primary: Server;
  readonly #options: DatabaseOptions;
  readonly #maxLag: number;
  readonly #log: Log | undefined;
  /** What a replica must have replayed: all that this process has written, and all that a replica has shown to it. */
  #floor: WalPosition | undefined;
  /** Counts the writes of this process, and how many of them the floor includes. */
  #writes = 0;
  #included = -1;
  #isLearning = false;
  #next = 0;

  constructor(urls: string[], primary: Server, options: DatabaseOptions) {
    this.#primary = primary;
    this.#options = options;
    this.#maxLag = options.readMaxLag ?? 1000;
    this.#log = options.log;
    this.#nodes = urls.map((url) => this.#open(url));
    primary.onWrite = (session) => this.#wrote(session);
  }

  get pools(): PoolState[] {
    return this.#nodes.map(({ name, server }) => stateOfPool(name, server.pool));
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
    if (!this.#floor || this.#included !== this.#writes) {
      void this.#learn(this.#primary.ask);
      return undefined;
    }
    const floor = this.#floor;
    this.#next += 1;
    for (let at = 0; at < this.#nodes.length; at += 1) {
      const node = this.#nodes[(this.#next + at) % this.#nodes.length] as ReadNode;
      if (node.restsUntil > performance.now()) continue;
      if (!node.position) void this.#probe(node);
      else {
        sentTo(node.name);
        const rows = await this.#readOn(node, statement, values, floor);
        if (rows) return rows as Row[];
      }
    }
    return undefined;
  }

  async #readOn(node: ReadNode, statement: Statement, values: unknown[], floor: WalPosition) {
    const { statementTimeout } = this.#options;
    const limit = statementTimeout > 0 ? statementTimeout / 4 : 60_000;
    try {
      const answers = node.server.together([
        [position, []],
        [statement, values],
        [replayed, []],
      ]);
      const [before, rows, after] = await withTimeout(limit, answers, () =>
        tryAgain(`It has not answered a read within ${limit} ms.`),
      );
      if (!this.#judge(node, parsePosition(before as string[][]), floor)) return undefined;
      this.#shown(node, Number(after?.[0]?.[0] ?? 0));
      return rows;
    } catch (error) {
      if (!isWorthAnotherServer(error)) throw error;
      this.#failed(node, reasonOf(error));
      return undefined;
    }
  }

  /** Asks a node how far it is, while the primary answers. */
  async #probe(node: ReadNode): Promise<void> {
    if (node.isProbed) return;
    node.isProbed = true;
    try {
      const seen = await withTimeout(timeoutMs, walPositionOf(node.server.ask), silent);
      if (this.#floor) this.#judge(node, seen, this.#floor);
    } catch (error) {
      this.#failed(node, reasonOf(error));
    }
    node.isProbed = false;
  }

  /** @returns whether the node may answer a read that needs all up to `floor` */
  #judge(node: ReadNode, seen: WalPosition, floor: WalPosition): boolean {
    const trouble = this.#troubleOf(seen, floor);
    if (trouble) {
      // The primary may be another server by now.
      void this.#learn(this.#primary.ask);
      this.#unfit(node, trouble);
      return false;
    }
    node.rest = restWhenUnfit.shortest;
    this.#report(node, '');
    if (isBehind(seen, floor)) {
      node.position = seen;
      node.restsUntil = performance.now() + node.restBehind;
      node.restBehind = Math.min(2 * node.restBehind, restWhenBehind.longest);
      return false;
    }
    node.restBehind = restWhenBehind.shortest;
    // Of several reads at a time the last answer is not always the latest.
    if (!node.position || node.position.bytes < seen.bytes) node.position = seen;
    return true;
  }

  /** Why a node cannot be used, even for a process that has written nothing. */
  #troubleOf(seen: WalPosition, floor: WalPosition): string | undefined {
    // Another system is no copy: a node of a distributed engine, which is up to date by itself.
    if (seen.system !== floor.system) return seen.isReplica ? 'it is a replica of another server' : undefined;
    if (seen.database !== floor.database) return 'it is another database';
    if (!seen.isReplica) {
      return seen.startedAt === floor.startedAt
        ? undefined
        : 'it has been promoted, or another one has: it does not follow the primary';
    }
    if (seen.timeline < floor.timeline) return 'it has not followed the last promotion yet';
    return seen.lag < this.#maxLag ? undefined : 'it is too far behind the primary';
  }

  #failed(node: ReadNode, reason: string): void {
    // Whoever waits for an answer in one of its sessions gets one from another server.
    node.server.cut();
    if (node.restsUntil <= performance.now()) this.#unfit(node, reason);
  }

  #unfit(node: ReadNode, reason: string): void {
    node.position = undefined;
    node.restsUntil = performance.now() + node.rest;
    node.rest = Math.min(2 * node.rest, restWhenUnfit.longest);
    this.#report(node, reason);
  }

  #report(node: ReadNode, reason: string): void {
    if (reason === node.reported) return;
    node.reported = reason;
    if (reason) this.#log?.warn({ node: node.name, why: reason }, 'a read node is not used');
    else this.#log?.info({ node: node.name }, 'a read node is used');
  }

  /** No later read may be answered by a replica that has replayed less. */
  #shown(node: ReadNode, bytes: number): void {
    const floor = this.#floor;
    const { position } = node;
    if (!floor || !position?.isReplica || position.system !== floor.system) return;
    if (bytes > position.bytes) node.position = { ...position, bytes };
    if (bytes > floor.bytes && position.timeline === floor.timeline) this.#floor = { ...floor, bytes };
  }

  /** @param session the one that wrote; undefined when it is unknown whether anything was written */
  async #wrote(session: Rows | undefined): Promise<void> {
    this.#writes += 1;
    if (session) await this.#learn(session, true);
    else this.#primary.renew();
  }

  /** Asks the primary where its log ends: all that was written before is up to there. */
  async #learn(rows: Rows, isAfterWrite = false): Promise<void> {
    if (this.#isLearning && !isAfterWrite) return;
    this.#isLearning = true;
    const writes = this.#writes;
    const seen = await withTimeout(timeoutMs, walPositionOf(rows), silent).catch(() => undefined);
    this.#isLearning = false;
    const floor = this.#floor;
    // The way to the primary may lead to another server by now.
    if (seen && (seen.isReplica || seen.timeline < (floor?.timeline ?? 0))) return this.#primary.renew();
    if (!seen || writes !== this.#writes) return;
    const isSame = floor?.system === seen.system && floor.timeline === seen.timeline;
    // Asked without need, the primary's position would keep all replicas from answering until they have caught up.
    const isNeeded = isAfterWrite || this.#included !== writes || !isSame;
    const bytes = isSame ? Math.max(floor.bytes, isNeeded ? seen.bytes : 0) : seen.bytes;
    this.#floor = { ...seen, bytes };
    this.#included = writes;
  }

  #open(url: string): ReadNode {
    const connectTimeout = Math.min(this.#options.connectTimeout, timeoutMs);
    const limits = { ...this.#options, connectTimeout };
    const name = new URL(url).host;
    const find = async () => {
      const sessions = await findSessions(url, limits);
      const message = 'a pooler drops session settings: set them on the role';
      if (sessions.advice) this.#log?.warn({ node: name, statements: sessions.advice }, message);
      return sessions;
    };
    const sessions = sessionsTo(url, limits);
    const pool = poolWith({ ...sessions.config, pipeline: true, max: this.#options.poolMax });
    const server = new Server(pool, { ...sessions, find });
    const rests = { rest: restWhenUnfit.shortest, restBehind: restWhenBehind.shortest };
    return { name, server, position: undefined, restsUntil: 0, ...rests, isProbed: false, reported: undefined };
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

/** True when a replica lacks something that a read must show. */
function isBehind(seen: WalPosition, floor: WalPosition): boolean {
  return seen.isReplica && seen.system === floor.system && seen.bytes < floor.bytes;
}

const silent = () => tryAgain(`It has not answered within ${timeoutMs} ms.`);

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
