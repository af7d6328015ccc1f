/** The range of the specification's `integer, format int64`. */
export const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const;

/** An int64 as the program holds it: a `number` as long as that is exact, a `bigint` beyond 2^53. */
export type Int64 = number | bigint;

/** Reads an int64 as PostgreSQL writes it. Most are small, and a `bigint` costs several times a `number`. */
export function int64FromDigits(digits: string): Int64 {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

/** True for a bigint within int64. */
export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= int64.min && value <= int64.max;
}

const decimalInteger = /^(?:0|-?[1-9]\d{0,39})$/;

/**
 * Reads an integer out of text: a path or query parameter, a GraphQL ID.
 * Only the canonical spelling counts (`7`, not `007`, `+7` or `7.0`), so that one thing has one address.
 *
 * @returns the integer, of any size; or the text itself, which the service will refuse by name.
 */
export function integerFromText(text: unknown): unknown {
  return typeof text === 'string' && decimalInteger.test(text) ? BigInt(text) : text;
}
