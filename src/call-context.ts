import type { Span } from '@opentelemetry/api';
import type { Deadline as DatabaseDeadline } from './database/database.ts';

/** The spans of a traced request. */
export interface RequestTrace {
  readonly request: Span;
  /** The span of the GraphQL operation. */
  operation?: Span | undefined;
}

/** The deadline of a request. */
export interface Deadline extends DatabaseDeadline {
  /** Counts items read or written for the request. */
  count?(items: number): void;
  /** The spans of the request; absent when it is not traced. */
  readonly trace?: RequestTrace | undefined;
}

/** A deadline that never expires, for commands and tests. */
export const noDeadline: Deadline = { at: Number.POSITIVE_INFINITY, isOver: false };
