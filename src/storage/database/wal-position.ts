import type { Rows, Statement } from '../records/sql.ts';

/** Which server this is, and how far its write-ahead log goes: what it has written, or replayed when it is a replica. */
export interface WalPosition {
  isReplica: boolean;
  isReadOnly: boolean;
  /** The same for all copies of a server. */
  system: string;
  database: string;
  startedAt: string;
  /** One more after each promotion. A replica's may be less than it is, until its next restart point. */
  timeline: number;
  bytes: number;
  /** How late (ms) what a replica shows may be. */
  lag: number;
}

// A replica that has replayed all that it has received, and is still receiving, is up to date however old its last
// transaction is. Its clock is compared with the primary's only while it has something to catch up with.
const lag = `
      case when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() and exists (select from pg_stat_wal_receiver) then 0
        else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 end`;

// Only a role with the right to read all statistics sees received_tli; for others a replica's timeline is known later.
export const position: Statement = {
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
      pg_size_bytes(current_setting('wal_segment_size')), ${lag}`,
};

/** @throws the error of `rows` */
export async function walPositionOf(rows: Rows): Promise<WalPosition> {
  return parsePosition(await rows(position, []));
}

export function parsePosition([row]: Array<Array<string | null>>): WalPosition {
  if (!row) throw new Error('The server did not return its position.');
  const [isReplica, isReadOnly, system, database, startedAt, timeline, bytes, segment, lag] = row;
  return {
    isReplica: isReplica === 't',
    isReadOnly: isReadOnly === 't',
    system: `${system}`,
    database: `${database}`,
    startedAt: `${startedAt}`,
    timeline: Number(timeline),
    bytes: endOfRecord(Number(bytes ?? -1), Number(segment)),
    lag: Number(lag ?? 0),
  };
}

const page = 8192;

/**
 * A primary names the place of its next record. If that record begins a page, the place is behind the page's header. A
 * replica names the end of the last record, before that header. They are the same position.
 */
function endOfRecord(bytes: number, segment: number): number {
  const header = bytes % segment < page ? 40 : 24;
  return bytes % page === header ? bytes - header : bytes;
}
