/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True when it must not be retried unless it is known to have failed. */
  readonly isWrite?: boolean;
}

/** Runs a statement on a server, perhaps in one session of it. Every value is text, or null. */
export type Rows = (statement: Statement, values: unknown[]) => Promise<Array<Array<string | null>>>;
