import type {
  PoolState,
  PostgresServer,
  Rows,
  Statement,
} from './postgres-server.ts';

/** Answers reads in place of the primary. */
export interface Reads {
  readonly pools: PoolState[];
  /**
   * Runs a statement that only reads, on a server that has every write this
   * process has made or shown.
   */
  read(statement: Statement, values: unknown[]): Promise<Rows>;
  close(): Promise<void>;
}

export type OpenReads = (primary: PostgresServer) => Reads;
