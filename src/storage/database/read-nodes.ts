import { performance } from 'node:perf_hooks';
import { tryAgain } from '../../errors.ts';
import type { PoolState } from '../../runtime/telemetry/observers.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { Rows } from '../records/statement.ts';
import type { DatabaseOptions, Log } from './options.ts';
import { poolWith, stateOfPool } from './pool.ts';
import { History, type Position, positionOf } from './positions.ts';
import { ReadNode } from './read-node.ts';
import { Server } from './server.ts';
import type { Sessions } from './sessions.ts';

/** How often (ms) the primary is asked how far it is, even when this process writes nothing. */
const interval = 250;
const patience = 1000;

/**
 * The servers that answer reads. A replica is used only while it has replayed what this process has written, and while
 * it is known not to be further behind the primary than it may be.
 */
export class ReadNodes {
  readonly #nodes: ReadNode[];
  readonly #primary: Server;
  /** For the questions that are asked all the time. */
  readonly #checks: Server;
  readonly #history: History;
  readonly #maxLag: number;
  readonly #log: Log | undefined;
  /** What was last said of a node. */
  readonly #said = new Map<ReadNode, string>();
  /** Counts the writes of this process; where the last one is in the log is known a moment later. */
  #writes = 0;
  #needed: { writes: number; position: Position | undefined } = { writes: -1, position: undefined };
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #next = 0;

  constructor(urls: string[], primary: Server, { config, keepStatements, find }: Sessions, options: DatabaseOptions) {
    const connectionTimeoutMillis = Math.min(options.connectTimeout, patience);
    this.#primary = primary;
    // The session is renewed, because the way to the primary may lead to another server by now.
    const pool = poolWith({ ...config, connectionTimeoutMillis, max: 1, maxLifetimeSeconds: 5 });
    this.#checks = new Server(pool, { keepStatements, find });
    this.#maxLag = options.readMaxLag ?? 1000;
    this.#history = new History(this.#maxLag);
    this.#log = options.log;
    this.#nodes = urls.map((url) => new ReadNode(url, { ...options, onNews: (node) => this.#tell(node) }));
    primary.onWrite = (session) => this.#wrote(session);
    void this.#look();
  }

  get pools(): PoolState[] {
    return this.#nodes.map(({ name, server }) => stateOfPool(name, server.pool));
  }

  /** The next node that may answer. */
  pick(): ReadNode | undefined {
    const count = this.#nodes.length;
    for (let tried = 0; tried < count; tried += 1) {
      this.#next = (this.#next + 1) % count;
      const node = this.#nodes[this.#next] as ReadNode;
      if (this.#hasAll(node) && this.#whyNot(node) === undefined) return node;
    }
    return undefined;
  }

  /** Whether it has all that this process has written. */
  #hasAll({ position }: ReadNode): boolean {
    const { writes, position: needed } = this.#needed;
    if (!position || !needed || writes !== this.#writes) return false;
    // Another system is no copy: a node of a distributed engine, which is up to date by itself.
    if (position.system !== needed.system) return true;
    if (!position.isReplica) return position.startedAt === needed.startedAt;
    return position.timeline >= needed.timeline && position.bytes >= needed.bytes;
  }

  /** Why a node is not used, whatever this process has written. */
  #whyNot({ position, trouble, isResting }: ReadNode): string | undefined {
    const { primary } = this.#history;
    if (!position || isResting) return trouble;
    if (!primary) return 'the primary has not said yet how far it is';
    if (position.system !== primary.system) {
      return position.isReplica ? 'it is a replica of another server' : undefined;
    }
    if (position.database !== primary.database) return 'it is another database';
    if (!position.isReplica) {
      return position.startedAt === primary.startedAt
        ? undefined
        : 'it has been promoted, or another one has: it does not follow the primary';
    }
    if (position.timeline < primary.timeline) return 'it has not followed the last promotion yet';
    const lag = performance.now() - this.#history.freshAt(position.bytes);
    return lag < this.#maxLag ? undefined : 'it is too far behind the primary';
  }

  #tell(node: ReadNode): void {
    const why = this.#whyNot(node) ?? '';
    if (this.#isClosed || why === this.#said.get(node)) return;
    this.#said.set(node, why);
    if (why) this.#log?.warn({ node: node.name, why }, 'a read node is not used');
    else this.#log?.info({ node: node.name }, 'a read node is used');
  }

  /**
   * Something has been written: replicas that have not replayed it are not used.
   *
   * @param session the one that wrote it; undefined when nobody knows whether it is written
   */
  async #wrote(session: Rows | undefined): Promise<void> {
    this.#writes += 1;
    const writes = this.#writes;
    if (session) await this.#need(writes, session);
    else this.#primary.renew();
  }

  async #need(writes: number, rows: Rows): Promise<void> {
    const position = await withTimeout(patience, positionOf(rows), silent).catch(() => undefined);
    if (!position || position.isReplica || writes !== this.#writes) return;
    this.#needed = { writes, position };
    for (const node of this.#nodes) node.awaitUpTo(position.bytes);
  }

  /** Asks the primary how far it is; and where the last write is, if nobody could say. */
  async #look(): Promise<void> {
    const since = performance.now();
    try {
      const position = await withTimeout(patience, positionOf(this.#checks.ask), silent);
      const isOutdated = position.timeline < (this.#needed.position?.timeline ?? 0);
      if (position.isReplica || position.isReadOnly || isOutdated) this.#checks.renew();
      else this.#history.add(position, since);
    } catch {
      this.#checks.cut();
    }
    if (this.#needed.writes !== this.#writes) await this.#need(this.#writes, this.#primary.ask);
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#look(), interval).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#checks.cut();
    await Promise.all([this.#checks.pool.end(), ...this.#nodes.map((node) => node.close())]);
  }
}

const silent = () => tryAgain(`It has not answered within ${patience} ms.`);
