/** The range of the specification's `integer, format int64`. */
export const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const;

/**
 * An int64 in memory: a `number` as long as that is exact, a `bigint` beyond
 * 2^53.
 */
export type Int64 = number | bigint;

/** Converts an integer to its form in memory; undefined for anything else. */
export function int64From(value: unknown) {
  if (Number.isSafeInteger(value)) return (value as number) + 0;
  if (typeof value !== 'bigint') return undefined;
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  const isInRange = value >= int64.min && value <= int64.max;
  return isInRange ? value : undefined;
}

// Nineteen digits, because no int64 has more.
const canonical = /^(?:0|-?[1-9]\d{0,18})$/;

/**
 * Parses an int64 from text: a path or query parameter, a GraphQL ID. Only the
 * canonical spelling counts (`7`, not `007`, `+7` or `7.0`), so that each
 * resource has one URL.
 */
export function int64FromText(text: unknown) {
  if (typeof text !== 'string' || !canonical.test(text)) return undefined;
  return int64From(int64FromDigits(text));
}

/**
 * For `JSON.stringify` of examples and defaults, which contracts show.
 *
 * @throws Error for an integer that readers of a contract would round
 */
export function shownInJson(_name: string, value: unknown) {
  if (typeof value !== 'bigint') return value;
  const shown = int64From(value);
  if (typeof shown === 'number') return shown;
  throw new Error(`${value} is beyond 2^53, and readers would round it.`);
}

/**
 * Parses an int64 from PostgreSQL's text. Most are small, and a `bigint` costs
 * several times as much as a `number`.
 */
export function int64FromDigits(digits: string) {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}
