/** A value as a parameter of a statement. */
export function parameterOf(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? `${value}` : (value ?? null);
}
