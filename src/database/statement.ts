/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True when it must not be retried unless it is known to have failed. */
  readonly isWrite?: boolean;
}
