/** The range of the specification's `integer, format int64`. */
export const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const;

/**
 * An int64 in memory: a `number` as long as that is exact, a `bigint` beyond
 * 2^53.
 */
export type Int64 = number | bigint;

/** Converts an integer to its form in memory; undefined for anything else. */
export function int64From(value: unknown) {
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? value + 0 : undefined;
  if (typeof value !== 'bigint' || value < int64.min || value > int64.max)
    return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

// Nineteen digits, because no int64 has more.
const canonical = /^(?:0|-?[1-9]\d{0,18})$/;

/**
 * Parses an int64 from text: a path or query parameter, a GraphQL ID. Only the
 * canonical spelling counts (`7`, not `007`, `+7` or `7.0`), so that each
 * resource has one URL.
 */
export function int64FromText(text: unknown) {
  return typeof text === 'string' && canonical.test(text)
    ? int64From(BigInt(text))
    : undefined;
}

/**
 * Parses an int64 from PostgreSQL's text. Most are small, and a `bigint` costs
 * several times as much as a `number`.
 */
export function int64FromDigits(digits: string) {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}
