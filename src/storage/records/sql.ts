/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True when it must not be retried unless it is known to have failed. */
  readonly isWrite?: boolean;
}

/** Runs a statement on a server, perhaps in one session of it. Every value is text, or null. */
export type Rows = (statement: Statement, values: unknown[]) => Promise<Array<Array<string | null>>>;

/** A name in SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in SQL, with `standard_conforming_strings` on, as it always is here. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A value as a parameter of a statement. */
export function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? `${value}` : (value ?? null);
}
