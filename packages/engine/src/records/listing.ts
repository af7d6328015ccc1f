import { isDataError } from '../database/postgres-errors.ts';
import { badInput } from '../errors.ts';
import { int64, int64From } from '../validation/int64.ts';
import {
  type Lists,
  maxFilterValues,
  membersOf,
  rangeEnds,
} from '../validation/list-query.ts';
import {
  cursorAt,
  type Identified,
  type Page,
  type PageQuery,
  pageLimit,
} from '../validation/page.ts';
import {
  cursorBeside,
  notACursor,
  type Place,
  placeOf,
  sortedMember,
} from './cursor.ts';
import {
  type Filter,
  isOf,
  type Layout,
  type ListStatement,
  ListStatements,
  type Part,
} from './list-statements.ts';
import { type Audience, seenBy, type View } from './ownership.ts';
import { type Column, type IndexOrder, type Table } from './table.ts';

/** What lists have in common that one statement reads. */
export interface Shape extends Layout {
  /** Names the shapes that one statement reads together. */
  readonly family: string;
  readonly sort: string;
  readonly filters: readonly Filter[];
  readonly views: ReadonlyArray<View | undefined>;
  /** One list. */
  readonly page: ListStatement;
  /**
   * The same of a sharded table, which refuses a lateral join: for filters by
   * several values it may sort all their rows.
   */
  readonly flat: ListStatement;
  readonly count: ListStatement;
  readonly estimate: ListStatement;
}

/** A list to be read. */
export interface Listing {
  /** Equal lists have the same. */
  readonly key: string;
  readonly shape: Shape;
  readonly limit: number;
  readonly values: Slots;
  readonly place: Place | undefined;
  /** True for the items before a place, which are read in reverse. */
  readonly isBackward: boolean;
  /** How many values its filters have, beyond one for each. */
  readonly furtherValues: number;
}

/** The parameters of a statement, by their slots. */
type Slots = Readonly<Record<string, unknown>>;

export function parametersOf({ slots }: ListStatement, { values }: Listing) {
  return slots.map((slot) => values[slot] ?? null);
}

type ListQuery = Partial<PageQuery> & Readonly<Record<string, unknown>>;

/** The lists in one order. */
interface Order {
  readonly by: readonly Column[];
  /** Those of all rows, then those of each audience. */
  readonly combinations: ReadonlyArray<readonly Combination[]>;
}

interface Combination extends IndexOrder {
  /** By which clients filter. */
  readonly named: readonly Column[];
}

const longestPage = 1000;
/** Appended to a prefix, it is above every text with this prefix. */
const greatest = '\u{10ffff}'.repeat(1000);

/** Interprets what queries ask of the lists of a collection. */
export class ListInterpreter {
  readonly #statements: ListStatements;
  readonly #filters: readonly Filter[];
  /** For the rows of all, then for those of each audience. */
  readonly #seen: ReadonlyArray<readonly Filter[]>;
  /** By their members. */
  readonly #orders = new Map<string, Order>();
  readonly #shapes = new Map<string, Shape>();
  readonly #together = new Map<string, ListStatement>();

  /**
   * @param audiences each has lists of its own
   * @throws Error with the indexes that the entity lacks
   */
  constructor(
    private readonly table: Table,
    lists: Lists,
    private readonly audiences: readonly Audience[] = [],
  ) {
    const { filters, orders } = membersOf(lists);
    const columns = filters.map((member) => table.column(member));
    let slots = 0;
    const nextOf = (column: Column) => filtersBy(column, slots++);
    const ofAudiences = audiences.map(({ rows }) =>
      Object.keys(rows).flatMap((member) =>
        nextOf(table.column(member)).filter(isOf('equal')),
      ),
    );
    this.#statements = new ListStatements(table);
    this.#seen = [[], ...ofAudiences];
    this.#filters = [...endsOf(table, lists), ...columns.flatMap(nextOf)];
    const declared = lists.combinations?.map((members) =>
      columns.filter(({ member }) => members.includes(member)),
    );
    const combinations = declared ? [[], ...declared] : subsets(columns);
    for (const sort of ['id', ...orders]) {
      const by = [table.column(sort)].filter(({ member }) => member !== 'id');
      this.#orders.set(sort, {
        by,
        combinations: this.#indexed(combinations, by),
      });
    }
  }

  /** For all rows no index is needed when no caller sees them. */
  #indexed(named: readonly Column[][], by: readonly Column[]) {
    const isSeen = this.#seen.map(({ length }) => length > 0);
    const { audiences } = this;
    isSeen[0] = audiences.length === 0 || isSeen.indexOf(false, 1) > 0;
    const all = this.#seen.map((seen) => {
      const own = seen.map(({ column }) => column);
      return named.map((columns) => [...new Set([...own, ...columns])]);
    });
    const needed = all.filter((_, at) => isSeen[at]).flat();
    const ordered = this.table.inOrderOfIndexes(needed, by);
    return all.map((some, at) => {
      const own: IndexOrder[] = isSeen[at]
        ? ordered.splice(0, some.length)
        : some.map((columns) => ({ columns, isOne: false }));
      return own.map((one, place) => ({ ...one, named: named[place] ?? [] }));
    });
  }

  /**
   * @throws StoreError BAD_USER_INPUT for a list that its collection does not
   *   declare, or a cursor of another order
   */
  interpret(query: ListQuery) {
    const { limit = 0, before, fromEnd = before !== undefined } = query;
    const shape = this.#shapeOf(query, fromEnd);
    const { sort, isDescending } = shape;
    const place = placeIn(query, sort);
    const values: Record<string, unknown> = {
      // One item more than a page has, to detect a next one.
      limit: limit + 1,
      place: place?.value,
      place_id: `${startOf(place, isDescending)}`,
    };
    for (const { name, slot, convert } of shape.filters)
      values[slot] = convert(query[name]);
    for (const view of viewsIn(query)) {
      for (const { slot, convert, column } of this.#seenBy(view))
        values[slot] = convert(view?.values[column.member]);
    }
    return {
      key: `${shape.page.name} ${fromEnd} ${JSON.stringify(values)}`,
      shape,
      limit,
      values,
      place,
      isBackward: fromEnd,
      furtherValues: furtherValuesIn(shape, values),
    };
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
    const shapes = isForEqual(shape) ? this.#relativesOf(shape) : [shape];
    const statement = this.#statements.pages(shapes);
    if (!statement.isRare) this.#together.set(family, statement);
    return statement;
  }

  /** The shapes of lists by other filters of one value. */
  #relativesOf(shape: Shape) {
    const filters = this.#filters.filter(isOf('equal'));
    const [view] = shape.views;
    const own = this.#seenBy(view);
    const combinations = this.#combinations(this.#orderBy(shape.sort), view);
    return combinations.map((one) => {
      const named = filters.filter(({ column }) => one.named.includes(column));
      return { ...shape, ...arranged([...own, ...named], one) };
    });
  }

  #seenBy(view: View | undefined) {
    return this.#seen[placeOfView(view)] ?? [];
  }

  #combinations({ combinations }: Order, view: View | undefined) {
    return combinations[placeOfView(view)] ?? [];
  }

  /** The shape depends on which parameters a query has, not on their values. */
  #shapeOf(query: ListQuery, fromEnd: boolean) {
    const { after, before, sort } = query;
    let key = `${mostFor(query)} ${sort} ${fromEnd} ${after !== undefined} ${before !== undefined}`;
    for (const { name } of this.#filters)
      if (query[name] != null) key += ` ${name}`;
    for (const view of viewsIn(query)) key += ` #${placeOfView(view)}`;
    const known = this.#shapes.get(key);
    if (known) return known;
    const shape = this.#newShape(query, fromEnd);
    if (!shape.page.isRare) this.#shapes.set(key, shape);
    return shape;
  }

  #newShape(query: ListQuery, fromEnd: boolean) {
    const { after, before } = query;
    const hasCursor = after !== undefined || before !== undefined;
    if (after !== undefined && before !== undefined)
      throw excluding('after', 'before');
    const filters = this.#filters.filter(({ name }) => query[name] != null);
    assertOneEach(filters);
    const ends = filters.filter(isEnd);
    const [end] = ends;
    const sort = query.sort ?? end?.column.member ?? 'id';
    const order = this.#orderBy(sort);
    const { by } = order;
    if (end && !by.includes(end.column)) throw ofOtherOrder(end, sort);
    const isById = by.length === 0;
    const views = viewsIn(query);
    const [first, ...others] = views.map((view) =>
      this.#arrangedIn(order, filters, sort, view),
    );
    const layout: Layout = {
      ...(first as Part),
      others,
      by,
      isDescending: sort.endsWith('_desc') !== fromEnd,
      ends,
      hasPlace: hasCursor || isById,
      most: mostFor(query),
    };
    const page = this.#statements.page(layout);
    const flat = {
      ...flattened(layout),
      others: others.map(flattened),
    };
    return {
      ...layout,
      family: isForEqual(layout)
        ? `${familyOf(layout, sort)} ${placeOfView(views[0])}`
        : page.name,
      views,
      sort,
      filters,
      page,
      flat: this.#statements.page(flat),
      ...this.#statements.totals(flat),
    };
  }

  /** @throws Error for an order that is not declared */
  #orderBy(sort: string) {
    const order = this.#orders.get(sortedMember(sort));
    if (order) return order;
    throw new Error(
      `${this.table.name} is not sorted by ${sort}: name it in the orders of its Records.`,
    );
  }

  /** The filters that are no ends, in the order of an index. */
  #arrangedIn(
    order: Order,
    filters: Filter[],
    sort: string,
    view: View | undefined,
  ): Part {
    const { by } = order;
    const combinations = this.#combinations(order, view);
    const given = filters.filter((filter) => !isEnd(filter));
    const combination = combinations.find(({ named }) => areOf(given, named));
    if (!combination) throw this.#notDeclared(given, combinations);
    const all = [...this.#seenBy(view), ...given];
    // PostgreSQL would sort all items without the value (incremental sort).
    const isSorted = by.length > 0 && all.length > 1;
    const nullFilter = isSorted && given.find(isOf('null'));
    if (nullFilter)
      throw badInput(
        `${nullFilter.name} goes with other filters in the order of id only, not of ${sort}.`,
      );
    return arranged(all, combination);
  }

  #notDeclared(given: Filter[], combinations: readonly Combination[]) {
    const asked = this.#spelled(given.map(({ column }) => column));
    const declared = combinations.map(({ named }) => this.#spelled(named));
    const others = new Set(declared);
    others.delete('');
    others.delete(asked);
    return badInput(
      `A list cannot be filtered by ${asked}: only by ${[...others].join(', or by ')}.`,
    );
  }

  #spelled(columns: readonly Column[]) {
    const names = this.#filters
      .filter(isOf('equal'))
      .filter(({ column }) => columns.includes(column))
      .map(({ name }) => name);
    return names.join(' with ');
  }
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
  const cursor = cursorBeside(place, shape);
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
  return { ...page, cursor, findsPrevious: () => hasBeyond(previous) };
}

/** Converts the error of a value in a cursor that its column cannot have. */
export function refusalOfCursor(
  { place, isBackward, shape }: Listing,
  error: unknown,
) {
  if (!place || !isDataError(error)) return error;
  const parameter = isBackward ? 'before' : 'after';
  return notACursor({ sort: shape.sort, parameter });
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

function filtersBy(column: Column, at: number): Filter[] {
  const { member } = column;
  const filter = { column, slot: `filter_${at}` };
  const isNull = `${member}_is_null`;
  const convert = (value: unknown) => {
    if (value === false) throw badInput(`${isNull} must be true.`);
  };
  return [
    { ...filter, name: member, kind: 'equal', convert: column.write },
    { ...filter, name: `${member}_in`, kind: 'in', convert: jsonOf(column) },
    { ...filter, name: isNull, kind: 'null', convert },
  ];
}

function endsOf(table: Table, { ranges = [], prefixes = [] }: Lists) {
  return [
    ...ranges.flatMap((member) => rangeOf(table.column(member))),
    ...prefixes.flatMap((member) => prefixOf(table.column(member))),
  ];
}

function rangeOf(column: Column) {
  const ends = Object.entries(rangeEnds);
  return ends.map(
    ([suffix, { slot, id }]): Filter => ({
      name: `${column.member}_${suffix}`,
      column,
      kind: slot,
      slot,
      id,
      convert: column.write,
    }),
  );
}

function prefixOf(column: Column): Filter[] {
  const name = `${column.member}_prefix`;
  const from = { name, column, kind: 'from', slot: 'from' } as const;
  const to = { name, column, kind: 'to', slot: 'to' } as const;
  const lastWith = (prefix: unknown) => `${prefix}${greatest}`;
  return [
    { ...from, id: int64.min, convert: column.write },
    { ...to, id: int64.max, convert: lastWith },
  ];
}

const isEnd = ({ id }: Filter) => id !== undefined;

/** True for lists that share a statement with those by other filters. */
function isForEqual({ conditions, ends, others }: Layout) {
  const isOne = ends.length + others.length === 0;
  return isOne && conditions.every(isOf('equal'));
}

function familyOf(layout: Layout, sort: string) {
  const { isDescending, hasPlace, most } = layout;
  return `${sortedMember(sort)} ${isDescending} ${hasPlace} ${most}`;
}

/** Of what a call sees; undefined for all rows. */
function viewsIn(query: ListQuery): ReadonlyArray<View | undefined> {
  const views = query[seenBy] as readonly View[] | undefined;
  return views ?? [undefined];
}

function placeOfView(view: View | undefined) {
  return view ? view.at + 1 : 0;
}

function assertOneEach(filters: Filter[]) {
  for (const [at, one] of filters.entries()) {
    const later = filters.slice(at + 1);
    const other = later.find((next) => exclude(one, next));
    if (other) throw excluding(one.name, other.name);
  }
}

/** Each column has one filter, and a list one range. */
function exclude(one: Filter, other: Filter) {
  if (one.slot === other.slot) return true;
  return isEnd(one) && isEnd(other) && one.column !== other.column;
}

/** True for filters by all of these columns and no other one. */
function areOf(filters: Filter[], columns: readonly Column[]) {
  return (
    filters.length === columns.length &&
    filters.every(({ column }) => columns.includes(column))
  );
}

function flattened<Of extends Part>(part: Of): Of {
  const conditions = part.conditions.map((filter): Filter => {
    if (filter.kind !== 'in') return filter;
    return { ...filter, kind: 'any' };
  });
  return { ...part, conditions };
}

/** The filters of a combination in the order of its index. */
function arranged(filters: readonly Filter[], { columns, isOne }: IndexOrder) {
  const conditions = columns.flatMap((column) =>
    filters.filter((filter) => filter.column === column),
  );
  return { conditions, isOne };
}

/**
 * How many values the filters have beyond one for each.
 *
 * @throws StoreError BAD_USER_INPUT for too many
 */
function furtherValuesIn({ conditions }: Shape, values: Slots) {
  let pages = 1;
  let more = 0;
  for (const { kind, slot } of conditions) {
    if (kind !== 'in') continue;
    const { length } = JSON.parse(`${values[slot]}`);
    pages *= length;
    more += length - 1;
  }
  if (pages > maxFilterValues)
    throw badInput(
      `The filters by several values have ${pages} combinations, at most ${maxFilterValues} are allowed.`,
    );
  return more;
}

/** All of them, from none to all. */
function subsets(columns: readonly Column[]) {
  return Array.from({ length: 2 ** columns.length }, (_, bits) =>
    columns.filter((_, at) => bits & (1 << at)),
  );
}

/** Distinct values as a JSON array of their texts. */
function jsonOf({ write }: Column) {
  return (values: unknown) => {
    const texts = new Set((values as unknown[]).map(write));
    return JSON.stringify([...texts]);
  };
}

function placeIn({ after, before }: ListQuery, sort: string) {
  if (after !== undefined) return placeOf(after, { sort });
  if (before === undefined) return undefined;
  return placeOf(before, { sort, parameter: 'before' });
}

/** The id at which a descending list begins, and above which an ascending one. */
function startOf(place: Place | undefined, isDescending: boolean) {
  if (!place) return isDescending ? int64.max : int64.min;
  if (!isDescending) return place.id;
  return int64From(BigInt(place.id) - 1n) ?? int64.min;
}

function ofOtherOrder({ name, column }: Filter, sort: string) {
  const { member } = column;
  return badInput(
    `${name} goes with the order ${member} or ${member}_desc, not ${sort}.`,
  );
}

function excluding(one: string, other: string) {
  return badInput(`${one} and ${other} exclude each other.`);
}
