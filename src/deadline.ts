import type { Span } from '@opentelemetry/api';

/** The spans of a traced request. */
export interface RequestTrace {
  readonly request: Span;
  /** The span of the GraphQL operation. */
  operation?: Span | undefined;
}

/** The deadline of a request. It accompanies the request to the database, and records what happened. */
export interface Deadline {
  /** The time on the `performance.now()` clock (ms). */
  readonly at: number;
  /** True when the client has disconnected, so that pending work can be skipped. */
  readonly isOver: boolean;
  /** Counts items read or written for the request. */
  count?(items: number): void;
  /** Records how long (ms) an input waited for its batch, and the size of that batch. */
  batched?(waited: number, size: number): void;
  /** Records which server answered a read; only called with read nodes. */
  servedBy?(node: string): void;
  /** The spans of the request; absent when it is not traced. */
  readonly trace?: RequestTrace | undefined;
}

/** A deadline that never expires, for commands and tests. */
export const noDeadline: Deadline = { at: Number.POSITIVE_INFINITY, isOver: false };
