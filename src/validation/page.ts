import { Type } from 'typebox';
import type { Int64 } from './int64.ts';
import {
  enumSchema,
  int64Schema,
  textSchema,
  use,
  withDefault,
} from './schemas.ts';

/** How many items a page may hold. */
export const pageLimit = { min: 1, max: 100, default: 20 } as const;

/**
 * A page of a list. It is read-only, because concurrent requests may share it.
 */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** True when there are items after the last one of this page. */
  readonly hasNext: boolean;
  /** The items' cursors; where they are absent, the ids are. */
  readonly cursors?: readonly string[];
}

/** Of a text of 1,000 characters, each of which JSON writes as six at most. */
const maxCursorLength = 9000;

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

/**
 * The orders of a list by its id and by these members, in one spelling for both
 * APIs.
 *
 * @param id of the component
 */
export function sortSchema<Member extends string = never>(
  id: string,
  members: Member[] = [],
) {
  type By = 'id' | Member;
  const orders = ['id' as By, ...members].flatMap((member: By) => [
    member,
    `${member}_desc` as const,
  ]);
  return enumSchema<By | `${By}_desc`>(
    id,
    Object.fromEntries(orders.map((order) => [order, order])),
    'Order of a list: `_desc` is descending, `id_desc` newest first.',
  );
}

const byId = sortSchema('Sort');

/** The paging parameters of every list. */
export interface PageQuery {
  /** Maximum number of items, 1 to 100. */
  readonly limit: number;
  /**
   * Only items that follow this id in the list, or this cursor where the order
   * is another one; from its beginning when undefined.
   */
  readonly after?: Int64 | string | undefined;
  /** A member, or one with `_desc`; `id` when undefined. */
  readonly sort?: string | undefined;
}

/**
 * @param noun names one item in the descriptions; its plural ends in s
 * @param sort the orders that its collection declares
 */
export function pageQueryMembers(
  noun: string,
  sort: ReturnType<typeof sortSchema<string>> = byId,
) {
  const seen = `Return only ${noun}s after this one: the id of the last ${noun} seen`;
  const afterCursor = textSchema({
    maxLength: maxCursorLength,
    description: `${seen}, or its cursor where the order is not the id.`,
  });
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
      Type.Unsafe<Int64 | string>(
        sort === byId ? int64Schema({ description: `${seen}.` }) : afterCursor,
      ),
    ),
    sort: withDefault(
      use(sort, `Order of the ${noun}s: \`id_desc\` is newest first.`),
      'id',
    ),
  };
}

/**
 * Maximum number of items that a list returns for this `limit`. The quota is
 * reserved before the input is validated: the longest page for a limit that is
 * too large or not an integer. After the refusal all but one unit is returned.
 */
export function mostItems(limit: unknown): number {
  const count =
    limit === undefined || limit === null ? pageLimit.default : Number(limit);
  return Number.isInteger(count)
    ? Math.min(Math.max(count, 0), pageLimit.max)
    : pageLimit.max;
}
