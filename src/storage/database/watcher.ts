import type { Call } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import { sqlState } from './errors.ts';

/** What the batches of a queue do, in words of which there are few. */
export interface QueueName {
  /** The table. */
  readonly collection: string;
  readonly operation: string;
}

/** A batch on its way, in one round trip. */
export interface SentBatch extends QueueName {
  readonly size: number;
  /** Whom it serves: one call for each input. */
  readonly calls: readonly Call[];
}

/** Watches what is sent to the database: metrics, traces. It is quick, and does not throw. */
export interface DatabaseWatcher {
  /** @returns what is called once, when the batch has its answer, or has failed as a whole */
  sent(batch: SentBatch): (error?: unknown) => void;
  /** A statement that only reads has been sent to this server, where there are several. */
  readOn?(node: string): void;
}

/** A queue at the moment. */
export interface QueueState extends QueueName {
  readonly waiting: number;
  /** Milliseconds since the first of those that wait came. */
  readonly oldest: number;
  /** How many inputs have been rejected since the start, because too much was pending. */
  readonly refused: number;
}

/** A pool at the moment. */
export interface PoolState {
  /** `primary`, or host and port of a read node. */
  readonly pool: string;
  readonly idle: number;
  readonly used: number;
  readonly max: number;
  /** How many statements wait for a connection. */
  readonly pending: number;
}

/** PostgreSQL's own code for a failure, if it comes from there. */
export function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof StoreError ? error.cause : error);
}

/** A failure in one of few words: the class of its SQLSTATE, `timeout`, `unavailable`, or `other`. */
export function failureType(error: unknown): string {
  const state = stateOf(error);
  // Whatever a server says, there are not more than the classes of PostgreSQL's manual, appendix A.
  if (state !== undefined)
    return /^[0-5][0-9A-Z]$|^[FHPX][0-9VX]$/.test(state.slice(0, 2)) ? state.slice(0, 2) : 'other';
  const cause = error instanceof StoreError ? error.cause : error;
  const { code, message = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  if (code === 'ETIMEDOUT' || /timeout exceeded/.test(message)) return 'timeout';
  return error instanceof StoreError ? 'unavailable' : 'other';
}
