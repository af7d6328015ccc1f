import { hash } from 'node:crypto';
import type { Statement } from '../../database/database.ts';
import { isDataError } from '../../database/postgres-errors.ts';
import { badInput } from '../../errors.ts';
import { once } from '../../once.ts';
import type { Int64 } from '../../validation/int64.ts';
import {
  type Lists,
  maxFilterValues,
  membersOf,
} from '../../validation/list-query.ts';
import {
  cursorAt,
  type Identified,
  type Page,
  type PageQuery,
} from '../../validation/page.ts';
import { longestPage, pageLimit } from '../../validation/page-size.ts';
import { type Audience, seenBy, type View } from '../rows/ownership.ts';
import type { Column, IndexOrder, Table } from '../rows/table.ts';
import { cursorBeside, notACursor, placeIn, sortedMember } from './cursor.ts';
import {
  assertOneEach,
  belowNull,
  endsOf,
  excluding,
  type Filter,
  filtersBy,
  isEnd,
  isOf,
} from './filters.ts';
import {
  countStatement,
  estimateStatement,
  flattened,
  type Layout,
  pageStatement,
  pagesStatement,
  startOf,
} from './statement.ts';

// The query of a list (`ListQuery`) becomes a `Listing`: its values, and the
// `Shape` that queries with the same parameters share. A shape is a `Layout`, of
// which SQL is made, and the statements (`ListStatement`) that are made of it.

/** What lists have in common whose queries have the same parameters. */
export interface Shape extends Layout {
  /** Names the shapes that one statement reads together. */
  readonly family: string;
  /** Those that the query has. */
  readonly filters: readonly Filter[];
  /** Those by several values that its client gives. */
  readonly several: readonly Filter[];
  /** Places in `#seen`, of which each has its parts. */
  readonly seen: readonly number[];
  /** By their limits, where nothing else makes a difference. */
  readonly firstPages: Map<number, Listing> | undefined;
  readonly page: ListStatement;
  // Few lists need these, so they are made when they are asked for.
  readonly flat: () => ListStatement;
  readonly count: () => ListStatement;
  readonly estimate: () => ListStatement;
}

/** SQL, and the names of its parameters in their order. */
export type ListStatement = Statement & { readonly slots: readonly string[] };

/** One list to be read. */
export interface Listing {
  /** Equal lists have the same. */
  readonly key: string;
  readonly shape: Shape;
  readonly limit: number;
  /** The parameters of a statement, by their slots. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly place: ReturnType<typeof placeIn>;
  /** True for the items before a place, which are read in reverse. */
  readonly isBackward: boolean;
  /** How many values its filters have, beyond one for each. */
  readonly furtherValues: number;
  /** The horizon: items with a greater id are left out. */
  readonly end?: Int64;
}

export function parametersOf(
  { slots }: ListStatement,
  { values }: Pick<Listing, 'values'>,
) {
  return slots.map((slot) => values[slot] ?? null);
}

/** What a client asks, and what its call sees. */
type ListQuery = Partial<PageQuery> &
  Readonly<Record<string, unknown>> & {
    readonly [seenBy]?: readonly View[];
    readonly [seenThrough]?: {
      /** In which `{0}` is the first value. */
      readonly conditions: readonly string[];
      readonly values: readonly string[];
    };
  };

/** The member of a list's query with what its call sees of other rows. */
export const seenThrough = '#through';

/**
 * How many statements of a collection are prepared: PostgreSQL keeps each in
 * every connection, and clients choose the filters.
 */
const mostPrepared = 200;

const ofFirstPages = ['limit', 'place_id'];

/** Interprets what queries ask of the lists of a collection. */
export class ListInterpreter {
  readonly #filters: readonly Filter[];
  /** Columns by which clients filter together. */
  readonly #combinations: ReadonlyArray<readonly Column[]>;
  /**
   * The filters of what a call sees: at 0 none, for all rows; at `View.at + 1`
   * those by an audience.
   */
  readonly #seen: ReadonlyArray<readonly Filter[]>;
  /** By the member of an order; for each of `#seen` those of `#combinations`. */
  readonly #indexes = new Map<string, IndexOrder[][]>();
  readonly #shapes = new Map<string, Shape>();
  readonly #together = new Map<string, ListStatement>();
  readonly #prepared = new Set<string>();
  readonly #either: readonly string[];

  /**
   * @param lists items match one filter of `either`
   * @param audiences each has lists of its own
   * @throws Error with the indexes that the entity lacks
   */
  constructor(
    private readonly table: Table,
    { either = [], ...lists }: Lists & { readonly either?: readonly string[] },
    audiences: readonly Audience[] = [],
  ) {
    this.#either = either;
    const { filters, orders } = membersOf(lists);
    const columns = filters.map((member) => table.column(member));
    let slots = 0;
    const nextOf = (column: Column) => filtersBy(column, slots++);
    const ofAudiences = audiences.map(({ rows }) =>
      Object.keys(rows).flatMap((member) =>
        nextOf(table.column(member)).filter(isOf('equal')),
      ),
    );
    this.#seen = [[], ...ofAudiences];
    this.#filters = [...endsOf(table, lists), ...columns.flatMap(nextOf)];
    const declared = lists.combinations?.map((members) =>
      columns.filter(({ member }) => members.includes(member)),
    );
    this.#combinations = declared ? [[], ...declared] : subsets(columns);
    const few = lists.few?.map((member) => table.column(member).member);
    for (const sort of ['id', ...orders])
      this.#indexes.set(sort, this.#indexesFor(this.#by(sort), few));
  }

  /** For all rows no index is needed when no caller sees them. */
  #indexesFor(by: readonly Column[], few?: readonly string[]) {
    const [, ...audiences] = this.#seen;
    const hasFilters = audiences.map(({ length }) => length > 0);
    const isOfAll = hasFilters.length === 0 || hasFilters.includes(false);
    const isSeen = [isOfAll, ...hasFilters];
    const all = this.#seen.map((seen) => {
      const own = seen.map(({ column }) => column);
      return this.#combinations.map((one) => [...new Set([...own, ...one])]);
    });
    const needed = all.filter((_, at) => isSeen[at]).flat();
    // Those of all that are needed, one after the other.
    const ordered = this.table.inOrderOfIndexes(needed, by, few);
    return all.map((some, at) => {
      if (isSeen[at]) return ordered.splice(0, some.length);
      return some.map((columns) => ({ columns, apart: 0, isShort: false }));
    });
  }

  #seenBy(at: number) {
    return this.#seen[at] ?? [];
  }

  /**
   * @throws StoreError BAD_USER_INPUT for a list that its collection does not
   *   declare, or a cursor of another order
   */
  interpret(query: ListQuery): Listing {
    const { limit = 0, before, fromEnd = before !== undefined } = query;
    const shape = this.#shapeOf(query, fromEnd);
    const { page, by, filters } = shape;
    const hasNulls = by.some(({ path }) => path);
    const place = placeIn(query, shape.sort, hasNulls);
    const firstPages = place ? undefined : shape.firstPages;
    const known = firstPages?.get(limit);
    if (known) return known;
    const values: Record<string, unknown> = {
      // One item more than a page has, to detect a next one.
      limit: limit + 1,
      place: place?.value,
      place_id: startOf(place, shape),
    };
    for (const { name, slot, convert } of filters)
      values[slot] = convert(query[name]);
    for (const [at, value] of query[seenThrough]?.values.entries() ?? [])
      values[`through_${at}`] = value;
    for (const view of query[seenBy] ?? []) {
      for (const { name, slot, convert } of this.#seenBy(view.at + 1))
        values[slot] = convert(view.values[name]);
    }
    const asked = JSON.stringify(parametersOf(page, { values }));
    const listing: Listing = {
      key: `${page.name} ${Number(fromEnd)} ${asked}`,
      shape,
      limit,
      values,
      place,
      isBackward: fromEnd,
      furtherValues: furtherValuesIn(shape, values),
    };
    firstPages?.set(limit, listing);
    return listing;
  }

  /**
   * The statement for several lists of a family. Lists whose filters have one
   * value each, without ranges, are a family for each order; those of one owner
   * are another. All other lists are a family for each shape.
   */
  together(shape: Shape) {
    const { family } = shape;
    const known = this.#together.get(family);
    if (known) return known;
    const shapes = sharesStatement(shape) ? this.#relativesOf(shape) : [shape];
    const statement = this.#made(pagesStatement, shapes);
    if (!statement.isRare) this.#together.set(family, statement);
    return statement;
  }

  /** The shapes of lists by other filters of one value. */
  #relativesOf(shape: Shape): Layout[] {
    const indexes = this.#indexesBy(shape.sort);
    const filters = this.#filters.filter(isOf('equal'));
    return this.#combinations.map((columns, place) => {
      const own = filters.filter(({ column }) => columns.includes(column));
      return {
        ...shape,
        parts: this.#partsOf(indexes, shape.seen, own, place),
      };
    });
  }

  /** Those of each part: one of `either`, and all others. */
  #eachOf(filters: readonly Filter[]) {
    const either = filters.filter(({ column }) =>
      this.#either.includes(column.member),
    );
    if (either.length < 2) return [filters];
    return either.map((one) =>
      filters.filter((other) => other === one || !either.includes(other)),
    );
  }

  /** @param place of the combination of these filters */
  #partsOf(
    indexes: IndexOrder[][],
    seen: readonly number[],
    filters: readonly Filter[],
    place: number,
  ) {
    return seen.map((at) => {
      const all = [...this.#seenBy(at), ...filters];
      return arranged(all, indexes[at]?.[place] as IndexOrder);
    });
  }

  /** The shape depends on which parameters a query has, not on their values. */
  #shapeOf(query: ListQuery, fromEnd: boolean) {
    const { after, before, sort, [seenBy]: views } = query;
    const { conditions } = query[seenThrough] ?? {};
    // Numbers, because V8 takes three times as long to write booleans.
    let parts = Number(fromEnd);
    if (after !== undefined) parts += 2;
    if (before !== undefined) parts += 4;
    let key = `${mostFor(query)} ${sort} ${parts}`;
    for (const { name } of this.#filters)
      if (query[name] != null) key += ` ${name}`;
    if (views) key += ` #${views.map(({ at }) => at)}`;
    if (conditions) key += ` ${conditions}`;
    const known = this.#shapes.get(key);
    if (known) return known;
    const shape = this.#newShape(query, fromEnd);
    if (!shape.page.isRare) this.#shapes.set(key, shape);
    return shape;
  }

  #newShape(query: ListQuery, fromEnd: boolean): Shape {
    const { after, before, [seenBy]: views } = query;
    const hasCursor = after !== undefined || before !== undefined;
    if (after !== undefined && before !== undefined)
      throw excluding('after', 'before');
    const filters = this.#filters.filter(({ name }) => query[name] != null);
    assertOneEach(filters);
    const end = filters.find(isEnd);
    // A member of another row may be null, and null is last in an order: a range
    // without an upper end must end before it.
    const isOpen = end?.column.path && !filters.some(isOf('to'));
    if (isOpen) filters.push(belowNull(end.column));
    const ends = filters.filter(isEnd);
    const sort = query.sort ?? end?.column.member ?? 'id';
    const seen = views?.map(({ at }) => at + 1) ?? [0];
    const indexes = this.#indexesBy(sort);
    const by = this.#by(sort);
    if (end && !by.includes(end.column)) {
      const { member } = end.column;
      throw badInput(
        `${end.name} goes with the order ${member} or ${member}_desc, not ${sort}.`,
      );
    }
    const given = filters.filter((filter) => !isEnd(filter));
    const parts = this.#eachOf(given).flatMap((own) =>
      this.#partsOf(indexes, seen, own, this.#placeOf(own)),
    );
    const layout: Layout = {
      parts,
      sort,
      by,
      isDescending: sort.endsWith('_desc') !== fromEnd,
      ends,
      hasPlace: hasCursor || by.length === 0,
      most: mostFor(query),
      through: query[seenThrough]?.conditions ?? [],
    };
    assertSorted(layout, given);
    const page = this.#made(pageStatement, layout);
    const takesOnlyLimit = page.slots.every((slot) =>
      ofFirstPages.includes(slot),
    );
    return {
      ...layout,
      family: sharesStatement(layout)
        ? `${familyOf(layout)} ${seen}`
        : page.name,
      filters,
      several: given.filter(({ kind, column }) => {
        return kind === 'in' && !this.#either.includes(column.member);
      }),
      seen,
      // A filter without a value of its own is judged each time.
      firstPages:
        takesOnlyLimit && filters.length === 0 ? new Map() : undefined,
      page,
      flat: once(() => this.#made(pageStatement, flattened(layout))),
      count: once(() => this.#made(countStatement, layout)),
      estimate: once(() => this.#made(estimateStatement, layout)),
    };
  }

  #made<Of>(
    make: (table: Table, of: Of) => ReturnType<typeof countStatement>,
    of: Of,
  ): ListStatement {
    const { kind, types, text } = make(this.table, of);
    const digest = hash('sha256', text).slice(0, 16);
    const name = `${kind}_${this.table.name}_${digest}`;
    if (this.#prepared.size < mostPrepared) this.#prepared.add(name);
    const isRare = !this.#prepared.has(name);
    return { name, text, slots: Object.keys(types), isRare };
  }

  /** By what an order sorts before the id. */
  #by(sort: string) {
    const member = sortedMember(sort);
    return member === 'id' ? [] : [this.table.column(member)];
  }

  /** @throws Error for an order that is not declared */
  #indexesBy(sort: string) {
    const indexes = this.#indexes.get(sortedMember(sort));
    if (indexes) return indexes;
    throw new Error(
      `${this.table.name} is not sorted by ${sort}: name it in the orders of its Records.`,
    );
  }

  /** The place of the combination of these filters. */
  #placeOf(filters: readonly Filter[]) {
    const asked = spelled(filters.map(({ column }) => column));
    const place = this.#combinations.map(spelled).indexOf(asked);
    if (place >= 0) return place;
    // No client has a filter by one of several members.
    const open = this.#combinations.filter((columns) =>
      columns.every(({ member }) => !this.#either.includes(member)),
    );
    const others = open.map(spelled).filter(Boolean);
    throw badInput(
      `A list cannot be filtered by ${asked}: only by ${others.join(', or by ')}.`,
    );
  }
}

const spelled = (columns: readonly Column[]) =>
  columns.map(({ member }) => member).join(' with ');

/** @throws StoreError where PostgreSQL would sort all items without the value */
function assertSorted({ parts, by, sort }: Layout, filters: Filter[]) {
  const isWithOthers = parts.some(({ conditions }) => conditions.length > 1);
  const filter = filters.find(isOf('null'));
  if (filter && isWithOthers && by.length > 0)
    throw badInput(
      `${filter.name} goes with other filters, and with own rows, in the order of id only, not of ${sort}.`,
    );
}

/**
 * Adds what a page itself does not tell: whether there are items on the side of
 * its cursor.
 *
 * @param readPage reads a page of the same list, elsewhere
 */
export async function withOtherEnd<Item extends Identified>(
  page: Page<Item>,
  { isBackward, place, shape }: Listing,
  readPage: (query: Partial<PageQuery>) => Promise<Page<Item>>,
) {
  const hasMore = page.hasNext;
  if (!place && !isBackward) return page;
  if (!place) return { ...page, hasNext: false, hasPrevious: hasMore };
  // Only a page without items needs it.
  const cursor = page.items[0] ? undefined : cursorBeside(place, shape);
  const hasBeyond = async (query: Partial<PageQuery>) => {
    const beyond = await readPage({ ...query, limit: 0 });
    return beyond.hasNext;
  };
  if (isBackward) {
    const after = cursorAt(page, -1) ?? cursor;
    const next = { after, before: undefined, fromEnd: false };
    const hasNext = await hasBeyond(next);
    return { ...page, cursor, hasNext, hasPrevious: hasMore };
  }
  const before = cursorAt(page, 0) ?? cursor;
  const previous = { after: undefined, before, fromEnd: true };
  return { ...page, cursor, hasPrevious: () => hasBeyond(previous) };
}

/** Converts the error of a value in a cursor that its column cannot have. */
export function refusalOfCursor(
  { place, isBackward, shape }: Listing,
  error: unknown,
) {
  if (!place || !isDataError(error)) return error;
  return notACursor(shape.sort, isBackward);
}

/**
 * The most items of a page that the statement reads. The schema of a collection
 * may allow more than others do.
 */
function mostFor({ limit = 0 }: ListQuery) {
  if (limit <= pageLimit.max) return pageLimit.max;
  if (limit <= longestPage) return longestPage;
  throw new Error(`A page has at most ${longestPage} items, not ${limit}.`);
}

/** True for lists that share a statement with those by other filters. */
function sharesStatement({ parts, ends, through }: Layout) {
  const isPlain = ends.length === 0 && through.length === 0;
  const filters = parts.flatMap(({ conditions }) => conditions);
  return isPlain && parts.length === 1 && filters.every(isOf('equal'));
}

function familyOf({ sort, isDescending, hasPlace, most }: Layout) {
  return `${sortedMember(sort)} ${isDescending} ${hasPlace} ${most}`;
}

/** The filters of a combination in the order of its index. */
function arranged(
  filters: readonly Filter[],
  { columns, apart, isShort }: IndexOrder,
) {
  const filtersOf = (some: Column[]) =>
    some.flatMap((one) => filters.filter(({ column }) => column === one));
  const { length } = filtersOf(columns.slice(0, apart));
  return { conditions: filtersOf(columns), apart: length, isShort };
}

/**
 * How many values the filters have beyond one for each.
 *
 * @throws StoreError BAD_USER_INPUT for too many
 */
function furtherValuesIn({ several }: Shape, values: Listing['values']) {
  if (several.length === 0) return 0;
  const counts = several.map(
    ({ slot }): number => JSON.parse(`${values[slot]}`).length,
  );
  const pages = counts.reduce((all, one) => all * one, 1);
  if (pages > maxFilterValues)
    throw badInput(
      `The filters by several values have ${pages} combinations, at most ${maxFilterValues} are allowed.`,
    );
  return counts.reduce((more, one) => more + one - 1, 0);
}

/** All of them, from none to all. */
function subsets(columns: readonly Column[]) {
  return Array.from({ length: 2 ** columns.length }, (_, bits) =>
    columns.filter((_, at) => bits & (1 << at)),
  );
}
