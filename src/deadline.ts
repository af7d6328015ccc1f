import type { Span } from '@opentelemetry/api';

/** The spans of a request that is traced. */
export interface RequestTrace {
  readonly request: Span;
  /** Of the GraphQL operation, while there is one. */
  operation?: Span | undefined;
}

/** Until when one caller waits. It travels with a request from its arrival to the database, and notes what happened. */
export interface Deadline {
  /** The time on the `performance.now()` clock (ms). */
  readonly at: number;
  /** True when work not yet started can be skipped: the client has disconnected. */
  readonly isOver: boolean;
  /** Counts items that were read or written for this caller. */
  count?(items: number): void;
  /** Notes how long (ms) an input has waited until its batch left, and how many inputs that had. */
  batched?(waited: number, size: number): void;
  /** Notes which server has answered a read, where there are several. */
  servedBy?(node: string): void;
  /** The spans that work for this caller is linked to; absent when it is not traced. */
  readonly trace?: RequestTrace | undefined;
}

/** For a caller that waits as long as it takes: a command or a test. */
export const noDeadline: Deadline = { at: Number.POSITIVE_INFINITY, isOver: false };
