import { Type } from 'typebox';
import type { Int64 } from './int64.ts';
import { int64Schema, withDefault } from './schemas.ts';

/** How many items a page may hold. */
export const pageLimit = { min: 1, max: 100, default: 20 } as const;

/**
 * A page of a list, ascending by id. It is read-only, because concurrent
 * requests may share it.
 */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** True when there are items after the last one of this page. */
  readonly hasNext: boolean;
}

/** The number of items of a list, on all its pages. */
export interface Total {
  readonly count: number;
  /**
   * True up to `maxExactTotal`; beyond it the count is PostgreSQL's estimate.
   */
  readonly isExact: boolean;
}

/** Counting more would take more than some ten milliseconds. */
export const maxExactTotal = 100_000;
/** Quota units of a count. */
export const totalCost = 10;

/** The paging parameters of every list. */
export interface PageQuery {
  /** Maximum number of items, 1 to 100. */
  readonly limit: number;
  /** Only items with a greater id; from the beginning when undefined. */
  readonly after?: Int64 | undefined;
}

/** @param noun names one item in the descriptions; its plural ends in s */
export function pageQueryMembers(noun: string) {
  return {
    limit: withDefault(
      Type.Integer({
        minimum: pageLimit.min,
        maximum: pageLimit.max,
        description: `Maximum number of ${noun}s to return.`,
      }),
      pageLimit.default,
    ),
    after: Type.Optional(
      int64Schema({
        description: `Return only ${noun}s after this one: the id of the last ${noun} seen.`,
      }),
    ),
  };
}

/**
 * Maximum number of items that a list returns for this `limit`. The quota is
 * charged before the input is validated: a limit that is too large or not an
 * integer is charged as the longest page, and then refused.
 */
export function mostItems(limit: unknown): number {
  const count =
    limit === undefined || limit === null ? pageLimit.default : Number(limit);
  return Number.isInteger(count)
    ? Math.min(Math.max(count, 0), pageLimit.max)
    : pageLimit.max;
}
