import {
  type Static,
  type TObject,
  type TOptional,
  type TSchema,
  type TUnsafe,
  Type,
} from 'typebox';
import { reportFault } from '../errors.ts';
import { int64 } from './int64.ts';
import { decimalOf, kindIn, kinds } from './kinds.ts';
import {
  maxSortedLength,
  type PageQuery,
  pageQueryMembers,
  sortSchema,
} from './page.ts';
import { assertPageFits, longestPage } from './page-size.ts';
import { int32, mostGiven, ofKind, ofNumbers, unwrapped } from './rules.ts';
import { memberOf, textSchema, use } from './schemas.ts';

/** Members of an item, by which its lists are filtered and sorted. */
export interface Lists<Member extends string = string> {
  /** A query may give one value of each: `state`. */
  filters?: readonly Member[] | undefined;
  /** Filters with several values: `state_in`. */
  in?: readonly Member[] | undefined;
  /** Filters that may ask for null: `ownerId_is_null`. */
  nulls?: readonly Member[] | undefined;
  /**
   * The combinations of filters, beside none.
   *
   * @default all of them
   */
  combinations?: ReadonlyArray<readonly Member[]> | undefined;
  /**
   * Members, of items or audiences, whose values have at most some 1,000 rows
   * each, null too: one index that begins with members up to such a one serves
   * all lists that filter by it.
   */
  few?: readonly string[] | undefined;
  /** Beside the id: `sort=at`. Those of texts are in lower case. */
  orders?: readonly Member[] | undefined;
  /** Orders that may begin and end at a value: `at_gte`, `at_lt`. */
  ranges?: readonly Member[] | undefined;
  /** Orders of texts that may have a beginning: `name_prefix`. */
  prefixes?: readonly Member[] | undefined;
  /**
   * The most items of a page, up to 1,000.
   *
   * @default 100
   */
  mostItems?: number | undefined;
}

/** The most values of a filter by several, and of all these filters together. */
export const maxFilterValues = 20;

/**
 * The ends of ranges. Items with the value of an end are in the range up to
 * this id, or above it.
 */
export const rangeEnds = {
  gte: { slot: 'from', id: int64.min, words: 'of at least this' },
  gt: { slot: 'from', id: int64.max, words: 'greater than this' },
  lte: { slot: 'to', id: int64.max, words: 'of at most this' },
  lt: { slot: 'to', id: int64.min, words: 'less than this' },
} as const;

/** The parameters by which a list of items is filtered. */
export type FilterOf<Item> = {
  readonly [Member in keyof Item]?: Item[Member] | undefined;
} & {
  readonly [Member in keyof Item & string as `${Member}_in`]?:
    | ReadonlyArray<NonNullable<Item[Member]>>
    | undefined;
} & {
  readonly [Member in keyof Item & string as `${Member}_is_null`]?:
    | boolean
    | undefined;
} & {
  readonly [Member in keyof Item &
    string as `${Member}_${keyof typeof rangeEnds | 'prefix'}`]?:
    | NonNullable<Item[Member]>
    | undefined;
};

type QueryOf<Item> = TObject<
  { limit: TUnsafe<number> } & {
    [Name in keyof FilterOf<Item> | 'after' | 'before' | 'sort']: TOptional<
      TUnsafe<NonNullable<(PageQuery & FilterOf<Item>)[Name]>>
    >;
  }
>;

/** All members by which lists are filtered, and sorted beside the id. */
export function membersOf<Member extends string>({
  filters = [],
  in: several = [],
  nulls = [],
  orders = [],
  ranges = [],
  prefixes = [],
}: Lists<Member>) {
  return {
    filters: union(filters, several, nulls),
    orders: union(orders, ranges, prefixes),
  };
}

function union<Member>(...lists: Array<readonly Member[]>) {
  const members = new Set(lists.flat());
  return [...members];
}

/**
 * The query of a list, in one spelling for both APIs.
 *
 * @param noun names one item in the descriptions; its plural ends in s
 * @param lists what the `Records` of the list get, too
 * @example listQuery('toy', toySchema, { filters: ['kind'], orders: ['madeAt'] })
 */
export function listQuery<Item extends TObject>(
  noun: string,
  item: Item,
  lists: Lists<keyof Static<Item> & string>,
) {
  const { in: several = [], nulls = [] } = lists;
  const { ranges = [], prefixes = [], mostItems } = lists;
  const { filters, orders } = membersOf(lists);
  const members = Object.entries(item.properties);
  const texts = members.map(([name, member]) => ({
    name,
    maxLength: longestOf(member),
  }));
  assertPageFits(texts, mostItems);
  if (mostItems !== undefined && !(mostItems <= longestPage))
    reportFault(
      `A page of ${noun}s has at most ${longestPage} items, not ${mostItems}.`,
    );
  const properties: Record<string, TSchema> = {};
  const schemaOf = (member: string) => {
    const schema = item.properties[member];
    const isId = member === 'id';
    if (schema && !isId && !memberOf(schema).kind.isOpaque) return schema;
    const other = isId ? 'all of them are sorted by' : 'cannot be compared';
    const fault = schema ? other : 'is no member';
    reportFault(`The lists of ${noun}s name ${member}, which ${fault}.`);
    return Type.String();
  };
  const add = (name: string, schema: TSchema, words: string) => {
    const isTaken = Object.hasOwn(properties, name) || ofPages.includes(name);
    if (isTaken)
      reportFault(`${name} has two meanings in the list of ${noun}s.`);
    const description = `Return only ${noun}s ${words}.`;
    properties[name] = Type.Optional(described(schema, description));
  };
  for (const member of orders) {
    const length = memberOf(schemaOf(member)).schema[mostGiven] ?? 0;
    if (length > maxSortedLength)
      reportFault(
        `No list is sorted by ${member} of ${noun}s: a cursor takes ${maxSortedLength} characters of it, not ${length}.`,
      );
    if (member.endsWith('_desc'))
      reportFault(`No list is sorted by ${member}: it names another order.`);
  }
  for (const member of filters) {
    const schema = schemaOf(member);
    add(member, schema, `with this ${member}`);
  }
  for (const member of several) {
    const value = described(schemaOf(member), `A ${member}.`);
    const values = Type.Array(value, {
      minItems: 1,
      maxItems: maxFilterValues,
    });
    add(`${member}_in`, values, `with one of these values of ${member}`);
  }
  for (const member of nulls) {
    const words = `without ${member}; it has no other value than true`;
    add(`${member}_is_null`, Type.Boolean(), words);
  }
  for (const member of ranges) {
    const schema = schemaOf(member);
    for (const [end, { words }] of Object.entries(rangeEnds))
      add(`${member}_${end}`, schema, `with a ${member} ${words}`);
  }
  for (const member of prefixes) {
    const schema = schemaOf(member);
    const words = `whose ${member} begins with this, in upper or lower case`;
    add(`${member}_prefix`, schema, words);
    if (memberOf(schema).kind !== kinds.string)
      reportFault(`No ${member} of ${noun}s has a beginning: it is no text.`);
  }
  const { $id } = item as { $id?: string };
  const sort = sortSchema(`${$id}Sort`, orders);
  const isSorted = orders.length > 0;
  const page = pageQueryMembers(noun, isSorted ? sort : undefined, mostItems);
  const query: unknown = Type.Object({ ...properties, ...page });
  return query as QueryOf<Static<Item>>;
}

const ofPages = ['limit', 'first', 'last', 'after', 'before', 'sort'];

/** The characters of a value in an item. */
export function longestOf(schema: TSchema): number | undefined {
  const { member } = unwrapped(schema);
  const { items, maxItems = 0 } = member;
  if (items) return maxItems * (longestOf(items) ?? 0);
  return member[mostGiven] ?? kindIn(member)?.rule(member)?.maxLength;
}

/**
 * The schema of a filter by a member: never null, without a default, and without
 * the bounds of inputs, because some values may have been stored before these.
 */
function described(schema: TSchema, description: string) {
  if ('items' in schema) return { ...schema, description };
  const { kind } = memberOf(schema);
  const { default: _, ...member } = unwrapped(schema).member;
  const { [mostGiven]: maxLength = 1000 } = member;
  if (kind === kinds.string) return textSchema({ maxLength, description });
  if (kind === kinds.enum) return use(member as TSchema, description);
  for (const bound of ofNumbers) delete member[bound];
  const { digits } = kind;
  return {
    ...member,
    ...(kind === kinds.integer && int32),
    ...(digits && { [ofKind]: decimalOf(...digits) }),
    description,
  } as TSchema;
}
