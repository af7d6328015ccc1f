/** Who waits for an answer, how long, and how much it may hold. It travels with a request from its arrival to the database. */
export interface Call {
  /** The clock (`performance.now()`, ms) from which nobody waits any more. */
  readonly deadline: number;
  /** True when the client has gone: what was not begun for it need not be. */
  readonly isOver: boolean;
  /** Why nothing more is done for it, where that is not that its client has gone. */
  readonly refusal?: Error | undefined;
  /** Counts what the answer will hold, in bytes. @throws StoreError BAD_USER_INPUT when that is more than one answer may hold, SERVICE_UNAVAILABLE when many answers are under way */
  spend(bytes: number): void;
}

/** Somebody who waits for as long as it takes: a command, a test. */
export const unhurried: Call = { deadline: Number.POSITIVE_INFINITY, isOver: false, spend: () => undefined };
