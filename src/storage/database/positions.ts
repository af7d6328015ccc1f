import type { Rows, Statement } from '../records/statement.ts';

/** Which server this is, and how far its write-ahead log goes: what it has written, or replayed when it is a replica. */
export interface Position {
  isReplica: boolean;
  isReadOnly: boolean;
  /** The same for all copies of a server. */
  system: string;
  database: string;
  startedAt: string;
  /** One more after each promotion. A replica's may be less than it is, until its next restart point. */
  timeline: number;
  bytes: number;
}

// Only the supervisor of statistics sees received_tli; for others a replica's timeline is known later.
const position: Statement = {
  name: 'position',
  text: `
    select pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
      (select system_identifier from pg_control_system()),
      (select oid from pg_database where datname = current_database()),
      extract(epoch from pg_postmaster_start_time()),
      case when pg_is_in_recovery() then greatest(
          (select timeline_id from pg_control_checkpoint()),
          (select min_recovery_end_timeline from pg_control_recovery()),
          (select received_tli from pg_stat_wal_receiver))
        else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end,
      case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn,
      pg_size_bytes(current_setting('wal_segment_size'))`,
};

/** @throws the error of `rows` */
export async function positionOf(rows: Rows): Promise<Position> {
  const [row] = await rows(position, []);
  if (!row) throw new Error('It does not say how far it is.');
  const [isReplica, isReadOnly, system, database, startedAt, timeline, bytes, segment] = row;
  return {
    isReplica: isReplica === 't',
    isReadOnly: isReadOnly === 't',
    system: `${system}`,
    database: `${database}`,
    startedAt: `${startedAt}`,
    timeline: Number(timeline),
    bytes: endOfRecord(Number(bytes ?? -1), Number(segment)),
  };
}

const page = 8192;

/**
 * The place where the next record goes is behind the header of its page, if it begins one; a replica has replayed up to
 * the end of the last record, before that header. They are the same place.
 */
function endOfRecord(bytes: number, segment: number): number {
  const header = bytes % segment < page ? 40 : 24;
  return bytes % page === header ? bytes - header : bytes;
}

/** Where the primary was in the recent past, on this process' clock. It keeps some forty positions. */
export class History {
  readonly #span: number;
  #known: Array<{ bytes: number; since: number }> = [];
  /** The last one. */
  primary: Position | undefined;

  /** @param span how far back (ms) it must know */
  constructor(span: number) {
    this.#span = span;
  }

  /** @param since a time (`performance.now()`) before the primary was asked */
  add(position: Position, since: number): void {
    const { primary } = this;
    if (position.system !== primary?.system || position.timeline !== primary.timeline) this.#known = [];
    this.primary = position;
    const known = this.#known;
    const last = known.at(-1);
    if (last?.bytes === position.bytes) last.since = since;
    else {
      if (since - (known.at(-2)?.since ?? Number.NEGATIVE_INFINITY) < this.#span / 40) known.pop();
      known.push({ bytes: position.bytes, since });
    }
    while (known[1] && known[1].since < since - this.#span) known.shift();
  }

  /** @returns the last time at which a server that has replayed so much had all there was */
  freshAt(bytes: number): number {
    return this.#known.findLast((one) => one.bytes <= bytes)?.since ?? Number.NEGATIVE_INFINITY;
  }
}
