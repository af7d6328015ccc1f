import { performance } from 'node:perf_hooks';
import { tryAgain } from '../../errors.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { Statement } from '../records/statement.ts';
import { isWorthAnotherServer } from './errors.ts';
import type { DatabaseOptions } from './options.ts';
import { poolWith } from './pool.ts';
import { type Position, positionOf } from './positions.ts';
import { Server } from './server.ts';
import { findSessions, type Sessions, sessionsTo } from './sessions.ts';

/** How long (ms) a node may take to answer a check, or to open a session. */
const patience = 1000;
/** How often (ms) it is asked how far it is: at first, while something is awaited from it; and later. */
const interval = { shortest: 2, longest: 250 };
/** How long (ms) it is left alone after a read has failed: longer each time, until one succeeds. */
const rest = { shortest: 250, longest: 10_000 };

export interface ReadNodeOptions extends DatabaseOptions {
  /** Called after each check, and when a read has failed. */
  onNews(node: ReadNode): void;
}

/** One server that answers reads. It is asked all the time how far it is. */
export class ReadNode {
  /** Host and port, for the log. */
  readonly name: string;
  readonly server: Server;
  /** Where it was at the last check; undefined when it has not answered that. */
  position: Position | undefined;
  /** Why it is not asked, if it is not. */
  trouble: string | undefined = 'it has not answered yet';
  readonly #checks: Server;
  readonly #options: ReadNodeOptions;
  #awaited = -1;
  #interval = interval.longest;
  #rest = rest.shortest;
  #restsUntil = 0;
  #isChecking = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #checkAt = 0;

  constructor(url: string, options: ReadNodeOptions) {
    this.name = new URL(url).host;
    this.#options = options;
    const limits = { ...options, connectTimeout: Math.min(options.connectTimeout, patience) };
    const find = () => this.#find(url, limits);
    const sessions = sessionsTo(url, limits);
    this.server = new Server(
      poolWith({
        ...sessions.config,
        max: options.poolMax,
        onConnect: async (client) => this.#assertSame((text) => client.query({ text, rowMode: 'array' })),
      }),
      { ...sessions, find },
    );
    // A connection of its own: a pool that is used up must not look like a server that is gone.
    this.#checks = new Server(poolWith({ ...sessions.config, max: 1 }), { ...sessions, find });
    this.#checkWithin(0);
  }

  get isResting(): boolean {
    return performance.now() < this.#restsUntil;
  }

  /** It is asked more often, until it has replayed so much. */
  awaitUpTo(bytes: number): void {
    this.#awaited = bytes;
    if (!this.position?.isReplica || this.position.bytes >= bytes) return;
    this.#interval = interval.shortest;
    if (!this.#isChecking) this.#checkWithin(this.#interval);
  }

  /**
   * Reads here. After a failure it is left alone for a while.
   *
   * @throws the error of the server; StoreError SERVICE_UNAVAILABLE when it takes so long that another one had better
   *   be asked, too
   */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const { statementTimeout } = this.#options;
    const tooLong = statementTimeout > 0 ? statementTimeout / 4 : 60_000;
    try {
      const rows = await withTimeout(tooLong, this.server.rows<Row>(statement, values), () => {
        this.server.cut();
        return tryAgain(`It has not answered a read within ${tooLong} ms.`);
      });
      this.#rest = rest.shortest;
      return rows;
    } catch (error) {
      if (isWorthAnotherServer(error)) this.#failed(error);
      throw error;
    }
  }

  #failed(error: unknown): void {
    if (this.isResting) return;
    this.trouble = reasonOf(error);
    this.#restsUntil = performance.now() + this.#rest;
    this.#rest = Math.min(2 * this.#rest, rest.longest);
    this.#options.onNews(this);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    this.#timer = undefined;
    try {
      this.position = await withTimeout(patience, positionOf(this.#checks.ask), silent);
      if (!this.isResting) this.trouble = undefined;
    } catch (error) {
      this.position = undefined;
      this.trouble = reasonOf(error);
      // Whoever waits for an answer from it gets one from another server.
      this.server.cut();
      this.#checks.cut();
    }
    this.#isChecking = false;
    this.#options.onNews(this);
    const isAwaited = this.position?.isReplica && this.position.bytes < this.#awaited;
    this.#interval = isAwaited ? Math.min(2 * this.#interval, interval.longest) : interval.longest;
    this.#checkWithin(this.#interval);
  }

  /** Whoever writes all the time must not put it off again and again. */
  #checkWithin(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#isClosed || (this.#timer && this.#checkAt <= at)) return;
    clearTimeout(this.#timer);
    this.#checkAt = at;
    this.#timer = setTimeout(() => this.#check(), milliseconds).unref();
  }

  async #find(url: string, limits: DatabaseOptions): Promise<Sessions> {
    const sessions = await findSessions(url, limits);
    const { advice } = sessions;
    const message = 'a pooler drops session settings: set them on the role';
    if (advice) this.#options.log?.warn({ node: this.name, statements: advice }, message);
    return sessions;
  }

  /** What was found out about one server says nothing about another one behind the same address. */
  async #assertSame(query: (text: string) => Promise<{ rows: unknown[][] }>): Promise<void> {
    const { rows } = await query('select extract(epoch from pg_postmaster_start_time())::text');
    if (this.position && rows[0]?.[0] !== this.position.startedAt) throw tryAgain('It is more than one server.');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.server.cut();
    this.#checks.cut();
    await Promise.all([this.server.pool.end(), this.#checks.pool.end()]);
  }
}

const silent = () => tryAgain(`It has not answered within ${patience} ms.`);

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
