import type { Span } from '@opentelemetry/api';
import type { Deadline } from './database/database.ts';

/** The spans of a traced request. */
export interface RequestTrace {
  readonly request: Span;
  operation?: Span | undefined;
}

/**
 * What a call of a service belongs to: its deadline, the count of its items,
 * its trace.
 */
export interface CallContext extends Deadline {
  /** Counts items read or written for the request. */
  count?(items: number): void;
  readonly trace?: RequestTrace | undefined;
}

/** The context of commands, tests and polls, whose calls have no deadline. */
export const unboundedCall: CallContext = {
  at: Number.POSITIVE_INFINITY,
  hasLeft: false,
};

/** An idempotency key, with which a creation is executed at most once. */
export interface IdempotencyClaim {
  /** Id of the client's API key; 0 for the configured key. */
  readonly keyId: number;
  /** Operation id, like `createPet`. */
  readonly operation: string;
  /** SHA-256 of the idempotency key. */
  readonly hash: Buffer;
  /** Called after the creation; true when an earlier request executed it. */
  noteReplay(isReplay: boolean): void;
}
