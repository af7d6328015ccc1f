import type { Span } from '@opentelemetry/api';

/** The spans of a request that is traced. */
export interface CallTrace {
  readonly request: Span;
  /** Of the GraphQL operation, while there is one. */
  operation?: Span | undefined;
}

/** The deadline and response size limit of one caller. It travels with a request from its arrival to the database. */
export interface Call {
  /** The deadline on the `performance.now()` clock (ms). */
  readonly deadline: number;
  /** True when work not yet started can be skipped: the client has disconnected, or there is a `refusal`. */
  readonly isOver: boolean;
  /** Why work for this call has stopped, when the reason is not a disconnected client. */
  readonly refusal?: Error | undefined;
  /**
   * Counts what the response will hold: items read or written, and their approximate size in bytes.
   *
   * @throws StoreError BAD_USER_INPUT when the response exceeds its size limit; SERVICE_UNAVAILABLE when many responses
   *   are in flight
   */
  spend(items: number, bytes: number): void;
  /** Notes how long (ms) an input has waited until its batch left, and how many inputs that had. */
  batched?(waited: number, size: number): void;
  /** Where what is done for this call belongs in a trace; absent when none is kept. */
  readonly trace?: CallTrace | undefined;
  /** Notes which server has answered a read, where there are several. */
  servedBy?(node: string): void;
}

/** A caller without a deadline: a command or a test. */
export const unhurried: Call = { deadline: Number.POSITIVE_INFINITY, isOver: false, spend: () => undefined };
