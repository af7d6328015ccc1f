import {
  Database,
  type DatabaseOptions,
  type Model,
} from '../../database/database.ts';
import {
  causeOf,
  codeOf,
  isConflict,
  isDataError,
  isUnsupported,
  reasonOf,
} from '../../database/postgres-errors.ts';
import {
  createPool,
  PostgresServer,
  type Rows,
  type RunStatement,
  type Statement,
} from '../../database/postgres-server.ts';
import type { Reads } from '../../database/reads.ts';
import { Sessions } from '../../database/sessions.ts';
import { withTimeout } from '../../database/with-timeout.ts';
import { Unavailable } from '../../errors.ts';

interface ReplicaOptions extends DatabaseOptions {
  /** The longest lag (ms) of a replica that answers. */
  maxLag: number;
  log: NonNullable<DatabaseOptions['log']>;
}

/**
 * @returns the lag (ms) of a node
 * @throws Unavailable after a second
 */
export function lagOf(options: DatabaseOptions, model: Model) {
  return Database.use(options, model, async (database) => {
    const { lag } = await positionOf(database);
    return lag;
  });
}

/**
 * How long (ms) a server may take to open a session or to report its position.
 */
const timeoutMs = 1000;
/**
 * How long (ms) a node is not asked while it lacks a write that this process
 * has made or shown.
 */
const pauseWhenBehind = 5;
/** How long (ms) an unusable node is not asked; the pause doubles each time. */
const pauseWhenUnusable = { shortest: 250, longest: 10_000 };

/**
 * A server's identity, and its position in the write-ahead log: written on a
 * primary, replayed on a replica.
 */
interface LogPosition {
  isReplica: boolean;
  /** The same for all copies of a server. */
  system: string;
  /** The same for all nodes of a Citus cluster; null without Citus. */
  cluster: string | null;
  database: string;
  /** In which its tables are found. */
  schema: string;
  /**
   * Increases by one at each promotion. A replica may report an older one until
   * its next restart point.
   */
  timeline: number;
  bytes: number;
  /** Replication lag (ms). */
  lag: number;
}

// Only a role that may read all statistics sees received_tli; other roles learn
// a replica's timeline later. A replica that has replayed everything it
// received, and is still receiving, has no lag, however old its last
// transaction is. Only a replica that is catching up compares its clock with
// the primary's.
const position: Statement = {
  name: 'position',
  text: `
    select json_build_object(
      'isReplica', pg_is_in_recovery(),
      'system', (
        select system_identifier::text from pg_control_system()),
      'cluster', case when to_regclass('pg_catalog.pg_dist_node') is not null
        then md5(query_to_xml(
          'select nodename, nodeport, groupid from pg_catalog.pg_dist_node order by nodeid',
          true, true, '')::text)
        end,
      'database', (
        select oid::text from pg_database
        where datname = current_database()),
      'schema', current_schema(),
      'timeline', case
        when pg_is_in_recovery() then greatest(0,
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline
            from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver))
        else (
          'x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
          )::bit(32)::int
        end,
      'bytes', coalesce(
        case
          when pg_is_in_recovery() then pg_last_wal_replay_lsn()
          else pg_current_wal_insert_lsn()
          end - '0/0'::pg_lsn,
        -1),
      'lag', case
        when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
          and exists (select from pg_stat_wal_receiver) then 0
        else coalesce(
          1000 * extract(epoch from
            clock_timestamp() - pg_last_xact_replay_timestamp()),
          0)
        end)`,
};
const replayPosition: Statement = {
  name: 'replayed',
  text: `select pg_last_wal_replay_lsn() - '0/0'::pg_lsn`,
};

interface ReadNode {
  /** Host and port, for the log. */
  readonly name: string;
  readonly server: PostgresServer;
  /**
   * Why it cannot be used; empty when it can, and undefined before its first
   * answer.
   */
  problem: string | undefined;
  pausedUntil: number;
  /** The next pause (ms). */
  pause: number;
}

/**
 * The servers that answer reads.
 *
 * Invariant: while `#isComplete`, `#leastPosition` covers every write that this
 * process has made or shown before, and a node answers a read only when it had
 * replayed that position; else the primary answers.
 *
 * A read is sent with two queries of the node's replay position, in one round
 * trip. The query before the read proves that the node is fresh enough. The
 * query after it tells how fresh later reads must be. PostgreSQL takes a
 * statement's snapshot before it evaluates the statement, so a statement cannot
 * report whether its own snapshot is fresh enough. Unusable nodes are probed in
 * the background, and only while clients read.
 */
export class Replicas implements Reads {
  readonly #nodes: ReadNode[];
  /** The position that a replica must have replayed. */
  #leastPosition: LogPosition | undefined;
  /** Whether it covers all writes. */
  #isComplete = false;
  /** How many have ended. */
  #writes = 0;
  #next = 0;

  constructor(
    urls: string[],
    private readonly primary: PostgresServer,
    private readonly options: ReplicaOptions,
    /** Called with the name of each server that is asked. */
    private readonly sentTo: (node: string) => void,
  ) {
    this.#nodes = urls.map((url) => this.#open(url));
    primary.onWrite = (session) => this.#wrote(session);
  }

  get pools() {
    return this.#nodes.map(({ name, server }) => server.state(name));
  }

  /**
   * Runs a statement that only reads, on a node that has replayed the least
   * position, else on the primary.
   *
   * @throws the error of a node, when another server would fail in the same way
   */
  async read(statement: Statement, values: unknown[]): Promise<Rows> {
    const least = this.#leastPosition;
    this.#next += 1;
    for (const at of this.#nodes.keys()) {
      if (!least || !this.#isComplete) break;
      const place = (this.#next + at) % this.#nodes.length;
      const node = this.#nodes[place] as ReadNode;
      if (node.pausedUntil > performance.now()) continue;
      if (node.problem !== '') {
        // In the background, once.
        node.pausedUntil = Number.POSITIVE_INFINITY;
        void this.#ask(node, least);
        continue;
      }
      this.sentTo(node.name);
      const rows = await this.#ask(node, least, [statement, values]);
      if (rows) return rows;
    }
    this.sentTo('primary');
    return this.#readOnPrimary(statement, values);
  }

  /**
   * The query after the read tells how fresh later reads must be: what the
   * primary has shown must not disappear.
   */
  async #readOnPrimary(statement: Statement, values: unknown[]) {
    const writes = this.#writes;
    try {
      const [rows = [], end = []] = await this.primary.inOneSession(
        [statement, values],
        [position, []],
      );
      this.#cover(parsePosition(end), writes, true);
      return rows;
    } catch (error) {
      if (error instanceof Unavailable && !isConflict(error)) throw error;
      // The role may not be allowed to query the position.
      const rows: Rows = await this.primary.rows(statement, values);
      this.#isComplete = false;
      return rows;
    }
  }

  /**
   * Asks a node for its position, with a read if any.
   *
   * @returns rows; undefined when another server must answer
   */
  async #ask(
    node: ReadNode,
    least: LogPosition,
    read?: Parameters<RunStatement>,
  ) {
    const queries: Array<Parameters<RunStatement>> = [[position, []]];
    if (read) queries.push(read, [replayPosition, []]);
    // A node that hangs leaves time for the other servers.
    const limit = read ? this.options.statementTimeout / 4 : timeoutMs;
    try {
      const answers = node.server.inOneSession(...queries);
      const [before = [], rows, after] = await within(limit, answers);
      const seen = parsePosition(before);
      if (!this.#check(node, seen, least)) return undefined;
      if (after && seen.system === least.system)
        this.#raiseLeastPosition(Number(after[0]?.[0]));
      return rows;
    } catch (error) {
      if (read && !isWorthAnotherServer(error)) throw error;
      node.server.cut();
      // When several reads fail together, only the first records it.
      if (!read || node.problem === '')
        this.#note(node, reasonOf(causeOf(error) ?? error));
      return undefined;
    }
  }

  /**
   * @returns whether the node may answer a read that needs the least position
   */
  #check(node: ReadNode, seen: LogPosition, least: LogPosition) {
    const problem = this.#problemOf(seen, least);
    // The primary may have changed.
    if (problem) void this.#updateLeastPosition();
    this.#note(node, problem);
    if (problem) return false;
    const isBehind = seen.system === least.system && seen.bytes < least.bytes;
    if (isBehind) node.pausedUntil = performance.now() + pauseWhenBehind;
    return !isBehind;
  }

  /**
   * Why a node cannot be used, even by a process that has written nothing;
   * empty when it can.
   */
  #problemOf(seen: LogPosition, least: LogPosition) {
    if (seen.schema !== least.schema)
      return `its search_path leads to the schema ${seen.schema}`;
    // A node of the same cluster is always up to date.
    const isOfCluster = seen.cluster !== null && seen.cluster === least.cluster;
    if (seen.system !== least.system)
      return isOfCluster && !seen.isReplica ? '' : 'it is another server';
    if (seen.database !== least.database) return 'it is another database';
    if (!seen.isReplica)
      return 'it has been promoted: it does not follow the primary';
    if (seen.timeline < least.timeline)
      return 'it has not followed the last promotion yet';
    if (seen.timeline > least.timeline)
      return 'it follows a promotion that the primary has not had';
    if (seen.lag < this.options.maxLag) return '';
    return 'it is too far behind the primary';
  }

  #note(one: ReadNode, problem: string) {
    const { log } = this.options;
    const { name: node, problem: before, pause } = one;
    one.problem = problem;
    if (problem) {
      one.pausedUntil = performance.now() + pause;
      one.pause = Math.min(2 * pause, pauseWhenUnusable.longest);
    } else {
      one.pausedUntil = 0;
      one.pause = pauseWhenUnusable.shortest;
    }
    if (problem === before) return;
    if (problem) log.warn({ node, why: problem }, 'a read node is not used');
    else log.info({ node }, 'a read node is used');
  }

  /** Excludes replicas that have replayed less from later reads. */
  #raiseLeastPosition(bytes: number) {
    const least = this.#leastPosition;
    if (least && bytes > least.bytes) this.#leastPosition = { ...least, bytes };
  }

  /**
   * @param session the session that wrote; undefined when the outcome of the
   *   write is unknown
   */
  async #wrote(session: RunStatement | undefined) {
    this.#writes += 1;
    this.#isComplete = false;
    if (session) await this.#updateLeastPosition(session);
    else this.primary.discardSessions();
  }

  /** Queries the end of the primary's log, which covers all earlier writes. */
  async #updateLeastPosition(session?: RunStatement) {
    const writes = this.#writes;
    const source = session ? { rows: session } : this.primary;
    const end = await positionOf(source).catch(() => undefined);
    if (end) this.#cover(end, writes, session !== undefined);
  }

  /**
   * @param end a position of the primary
   * @param writes those before the primary was asked
   * @param isNeeded whether it covers what has just been written or shown
   */
  #cover(end: LogPosition, writes: number, isNeeded: boolean) {
    const least = this.#leastPosition;
    // The primary's address may now lead to another server.
    const isFormerPrimary =
      end.isReplica || end.timeline < (least?.timeline ?? 0);
    if (isFormerPrimary) {
      this.primary.discardSessions();
      return;
    }
    const isSameServer =
      least?.system === end.system && least.timeline === end.timeline;
    // A position that no client needs would only exclude replicas that have not
    // reached it yet.
    const mustReach = isNeeded || !this.#isComplete;
    if (!isSameServer) this.#leastPosition = end;
    else if (mustReach) this.#raiseLeastPosition(end.bytes);
    // A write since then may be beyond it.
    if (writes === this.#writes) this.#isComplete = true;
  }

  #open(url: string) {
    const { connectTimeout, poolMax: max } = this.options;
    const name = new URL(url).host;
    const sessions = new Sessions({
      ...this.options,
      url,
      connectTimeout: Math.min(connectTimeout, timeoutMs),
      advice: { node: name },
    });
    const pool = createPool({ ...sessions.config, pipeline: true, max });
    return {
      name,
      server: new PostgresServer(pool, sessions),
      problem: undefined,
      pausedUntil: 0,
      pause: pauseWhenUnusable.shortest,
    };
  }

  async close() {
    for (const { server } of this.#nodes) server.cut();
    await Promise.all(this.#nodes.map(({ server }) => server.pool.end()));
  }
}

/**
 * True when another server may answer: the data is not at fault, and the
 * statement was not slow.
 */
export function isWorthAnotherServer(error: unknown) {
  const cause = causeOf(error);
  // Its time-out, or that of the socket.
  const isSlow = ['57014', 'ETIMEDOUT'].includes(`${codeOf(cause ?? {})}`);
  return !isDataError(cause) && !isUnsupported(cause) && !isSlow;
}

/** @throws Unavailable after a second */
async function positionOf(source: { rows: RunStatement }) {
  const answer = source.rows(position, []);
  return parsePosition(await within(timeoutMs, answer));
}

function within<T>(limit: number, answer: Promise<T>) {
  const message = `It has not answered within ${limit} ms.`;
  return withTimeout(limit, answer, () => new Unavailable(message));
}

function parsePosition([[text] = [null]]: Rows): LogPosition {
  const seen: LogPosition = JSON.parse(`${text}`);
  return { ...seen, bytes: endOfRecord(seen.bytes) };
}

/**
 * A primary reports where its next record starts, which may follow a page
 * header of 24 or 40 bytes. A replica reports where its last record ends,
 * before that header. No record ends between the two.
 */
function endOfRecord(bytes: number) {
  const inPage = bytes % 8192;
  const isAfterHeader = inPage === 24 || inPage === 40;
  if (!isAfterHeader) return bytes;
  return bytes - inPage;
}
