import { Type } from 'typebox';
import type { Int64 } from './int64.ts';
import { enumSchema, int64Schema, use, withDefault } from './schemas.ts';

/** How many items a page may hold. */
export const pageLimit = { min: 1, max: 100, default: 20 } as const;

/**
 * A page of a list. It is read-only, because concurrent requests may share it.
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

/** The orders of a list. They have one spelling in both APIs. */
export const Sort = { id: 'id', id_desc: 'id_desc' } as const;
export type Sort = (typeof Sort)[keyof typeof Sort];

const sortSchema = enumSchema(
  'Sort',
  Sort,
  'Order of a list: `id`, or `id_desc` for newest first.',
);

/** The paging parameters of every list. */
export interface PageQuery {
  /** Maximum number of items, 1 to 100. */
  readonly limit: number;
  /**
   * Only items that follow this id in the list; from its beginning when
   * undefined.
   */
  readonly after?: Int64 | undefined;
  /** Ascending by id when undefined. */
  readonly sort?: Sort | undefined;
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
    sort: withDefault(
      use(sortSchema, `Order of the ${noun}s: \`id_desc\` is newest first.`),
      Sort.id,
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
