/** A statement that is prepared once per connection. `name` is unique among all statements. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** True when it may be retried only after a known failure. */
  readonly isWrite?: boolean;
}

/** Runs a statement on a server or in one of its sessions. Every value is text, or null. */
export type Rows = (statement: Statement, values: unknown[]) => Promise<Array<Array<string | null>>>;

/** Quotes an SQL identifier. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes an SQL string; `standard_conforming_strings` is on. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Converts a value to a statement parameter. */
export function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? `${value}` : (value ?? null);
}
