import { Type } from 'typebox';
import type { Int64 } from './int64.ts';
import { pageLimit } from './page-size.ts';
import {
  enumSchema,
  int64Schema,
  textSchema,
  use,
  withDefault,
} from './schemas.ts';

/** An item of a list. */
export interface Identified {
  readonly id: Int64;
}

/**
 * A page of a list. It is read-only, because concurrent requests may share it.
 */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** True when there are items after the last one of this page. */
  readonly hasNext: boolean;
  /**
   * True when there are items before the first one of this page. After a cursor
   * only a query can tell.
   */
  readonly hasPrevious?: boolean | (() => Promise<boolean>);
  /** The cursor of the place of a page without items. */
  readonly cursor?: string | undefined;
  /** The items' cursors; where they are absent, the ids are. */
  readonly cursors?: readonly string[];
}

/** The cursor at the beginning or the end of a page. */
export function cursorAt(
  { items, cursors, cursor }: Page<Identified>,
  place: 0 | -1,
) {
  const item = items.at(place);
  return item ? (cursors?.at(place) ?? `${item.id}`) : cursor;
}

/** A list may be sorted by texts of so many characters. */
export const maxSortedLength = 1000;
/** JSON writes a character as six at most, base64 three as four. */
export const maxCursorLength = 9 * maxSortedLength;

/** The number of items of a list, on all its pages. */
export interface Total {
  readonly count: number;
  /**
   * True up to `maxExactTotal`; beyond it the count is PostgreSQL's estimate.
   */
  readonly isExact: boolean;
}

/** Counting further takes over ten milliseconds. */
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
  return enumSchema(
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
  /** Only the last ones before this. */
  readonly before?: Int64 | string | undefined;
  /** True for the last ones, where `before` is absent. */
  readonly fromEnd?: boolean | undefined;
  /** A member, or one with `_desc`; `id`, or that of a range, when undefined. */
  readonly sort?: string | undefined;
}

/**
 * The query parameters of a page.
 *
 * @param noun names one item in the descriptions; its plural ends in s
 * @param sort the orders that its collection declares
 * @param maximum the most items of a page
 */
export function pageQueryMembers(
  noun: string,
  sort: ReturnType<typeof sortSchema<string>> = byId,
  maximum: number = pageLimit.max,
) {
  const isById = sort === byId;
  const cursor = (words: string) => {
    const id = int64Schema({ description: `Return only ${words}.` });
    const text = textSchema({
      maxLength: maxCursorLength,
      description: `Return only ${words}, or its cursor where the order is not the id.`,
    });
    return Type.Optional(Type.Unsafe<Int64 | string>(isById ? id : text));
  };
  const newestFirst = `Order of the ${noun}s: \`id_desc\` is newest first.`;
  const ofOrders = Type.Optional(
    use(
      sort,
      `${newestFirst} When absent, by the member of a range or a beginning, or else by \`id\`.`,
    ),
  );
  return {
    limit: withDefault(
      Type.Integer({
        minimum: pageLimit.min,
        maximum,
        description: `Maximum number of ${noun}s to return.`,
      }),
      pageLimit.default,
    ),
    after: cursor(`${noun}s after this one: the id of the last ${noun} seen`),
    before: cursor(
      `the last ${noun}s before this one: the id of the first ${noun} seen`,
    ),
    sort: isById ? withDefault(use(sort, newestFirst), 'id') : ofOrders,
  };
}

/**
 * Maximum number of items that a list returns for this `limit`. The quota is
 * reserved before the input is validated. A limit that is too large, or not an
 * integer, reserves the longest page. Its refusal returns all but one unit.
 *
 * @param most what the schema of the list allows
 */
export function mostFor(limit: unknown, most: number = pageLimit.max) {
  const count = Number(limit ?? pageLimit.default);
  if (!Number.isInteger(count)) return most;
  return Math.min(Math.max(count, 0), most);
}
