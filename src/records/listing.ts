import { isDataError } from '../database/postgres-errors.ts';
import { badInput } from '../errors.ts';
import { type Int64, int64, int64From } from '../validation/int64.ts';
import {
  type Lists,
  maxAmong,
  membersOf,
  rangeEnds,
} from '../validation/list-query.ts';
import { cursorAt, type Page, type PageQuery } from '../validation/page.ts';
import {
  cursorBeside,
  notACursor,
  type Place,
  placeOf,
  sortedMember,
} from './cursor.ts';
import {
  type Filter,
  type Layout,
  type ListStatement,
  ListStatements,
} from './list-statements.ts';
import { type Column, type IndexOrder, type Table } from './table.ts';

/** What lists have in common that one statement reads. */
export interface Shape extends Layout {
  /** Names the shapes that one statement reads together. */
  readonly family: string;
  readonly sort: string;
  readonly filters: readonly Filter[];
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
  readonly among: number;
}

/** The parameters of a statement, by their slots. */
type Slots = Readonly<Record<string, unknown>>;

export function parametersOf({ slots }: ListStatement, { values }: Listing) {
  return slots.map((slot) => values[slot] ?? null);
}

type Query = Partial<PageQuery> & Readonly<Record<string, unknown>>;

/** The lists in one order. */
interface Order {
  readonly by: readonly Column[];
  readonly combinations: readonly IndexOrder[];
}

/** No text that begins with another one is greater than that and these. */
const greatest = '\u{10ffff}'.repeat(1000);

/** Interprets what queries ask of the lists of a collection. */
export class Listings {
  readonly #statements: ListStatements;
  readonly #filters: readonly Filter[];
  /** By their members. */
  readonly #orders = new Map<string, Order>();
  readonly #shapes = new Map<string, Shape>();
  readonly #together = new Map<string, ListStatement>();

  /**
   * @param owner the member by which lists of one owner are filtered
   * @throws Error with the indexes that the entity lacks
   */
  constructor(
    private readonly table: Table,
    lists: Lists,
    private readonly owner?: string,
  ) {
    const { filters, orders } = membersOf(lists);
    const columns = filters.map((member) => table.column(member));
    this.#statements = new ListStatements(table);
    this.#filters = [...endsOf(table, lists), ...columns.flatMap(filtersBy)];
    const declared = lists.combinations?.map((members) =>
      columns.filter(({ member }) => members.includes(member)),
    );
    const combinations = declared ? [[], ...declared] : subsets(columns);
    for (const sort of ['id', ...orders]) {
      const by = [table.column(sort)].filter(({ member }) => member !== 'id');
      this.#orders.set(sort, {
        by,
        combinations: table.inOrderOfIndexes(combinations, by),
      });
    }
  }

  /**
   * @throws StoreError BAD_USER_INPUT for a list that its collection does not
   *   declare, or a cursor of another order
   */
  interpret(query: Query) {
    const { limit = 0, after, before, fromEnd = before !== undefined } = query;
    const shape = this.#shapeOf(query, fromEnd);
    const { sort, isDescending } = shape;
    const cursor = after ?? before;
    const parameter = after === undefined ? 'before' : 'after';
    const place =
      cursor === undefined ? undefined : placeOf(cursor, { sort, parameter });
    const bound = isDescending ? below : beyond;
    const values: Record<string, unknown> = {
      // One item more than a page has, to detect a next one.
      limit: limit + 1,
      place: place?.value,
      place_id: bound(place),
    };
    for (const { name, slot, convert } of shape.filters)
      values[slot] = convert(query[name]);
    const among = valuesAmong(shape, values);
    const key = `${shape.page.name} ${fromEnd} ${JSON.stringify(values)}`;
    return { key, shape, limit, values, place, isBackward: fromEnd, among };
  }

  /**
   * The statement for several lists of a family. Lists whose filters have one
   * value each, without ranges, are a family for each order; those of one owner
   * are another. All other lists are a family for each shape.
   */
  together(shape: Shape) {
    const { family, sort } = shape;
    const known = this.#together.get(family);
    if (known) return known;
    const isOwned = this.#isOwned(shape);
    const equal = this.#filters.filter(({ kind }) => kind === 'equal');
    const { combinations } = this.#orders.get(sortedMember(sort)) as Order;
    const shapes = isPlain(shape)
      ? combinations
          .map((one) => ({ ...shape, ...arranged(equal, one) }))
          .filter((one) => this.#isOwned(one) === isOwned)
      : [shape];
    const statement = this.#statements.pages(shapes);
    if (!statement.isRare) this.#together.set(family, statement);
    return statement;
  }

  #isOwned({ conditions }: Layout) {
    return conditions.some(({ name }) => name === this.owner);
  }

  /** The shape depends on which parameters a query has, not on their values. */
  #shapeOf(query: Query, fromEnd: boolean) {
    const { after, before, sort } = query;
    let key = `${sort} ${fromEnd} ${after !== undefined} ${before !== undefined}`;
    for (const { name } of this.#filters)
      if (query[name] != null) key += ` ${name}`;
    const known = this.#shapes.get(key);
    if (known) return known;
    const shape = this.#newShape(query, fromEnd);
    if (!shape.page.isRare) this.#shapes.set(key, shape);
    return shape;
  }

  #newShape(query: Query, fromEnd: boolean) {
    const { after, before } = query;
    const hasCursor = after !== undefined || before !== undefined;
    if (after !== undefined && before !== undefined)
      throw excluding('after', 'before');
    const filters = this.#filters.filter(({ name }) => query[name] != null);
    assertOneEach(filters);
    const ends = filters.filter(isEnd);
    const given = filters.filter((filter) => !isEnd(filter));
    const sort = query.sort ?? ends[0]?.column.member ?? 'id';
    const { by, combinations } = this.#orderOf(sort, ends[0]);
    const combination = combinations.find(({ columns }) =>
      areOf(given, columns),
    );
    if (!combination) throw this.#notDeclared(given, combinations);
    // PostgreSQL would sort all items without the value (incremental sort).
    const isById = by.length === 0;
    const nullFilter = !isById && given.length > 1 && given.find(isNull);
    if (nullFilter)
      throw badInput(
        `${nullFilter.name} goes with other filters in the order of id only, not of ${sort}.`,
      );
    const layout: Layout = {
      ...arranged(given, combination),
      by,
      isDescending: sort.endsWith('_desc') !== fromEnd,
      ends,
      hasPlace: hasCursor || isById,
    };
    const page = this.#statements.page(layout);
    const flat = { ...layout, conditions: layout.conditions.map(flattened) };
    const { isDescending, hasPlace } = layout;
    const plain = `${sortedMember(sort)} ${isDescending} ${hasPlace} ${this.#isOwned(layout)}`;
    return {
      ...layout,
      family: isPlain(layout) ? plain : page.name,
      sort,
      filters,
      page,
      flat: this.#statements.page(flat),
      ...this.#statements.totals(flat),
    };
  }

  /** @throws Error for an order that is not declared */
  #orderOf(sort: string, end: Filter | undefined) {
    const order = this.#orders.get(sortedMember(sort));
    if (!order)
      throw new Error(
        `${this.table.name} is not sorted by ${sort}: name it in the orders of its Records.`,
      );
    if (!end || order.by.includes(end.column)) return order;
    const { member } = end.column;
    throw badInput(
      `${end.name} goes with the order ${member} or ${member}_desc, not ${sort}.`,
    );
  }

  /** Clients do not filter by the owner. */
  #notDeclared(given: Filter[], combinations: readonly IndexOrder[]) {
    const names = this.#filters.filter(({ kind }) => kind === 'equal');
    const spelled = (columns: readonly Column[]) =>
      names
        .filter(
          ({ name, column }) => name !== this.owner && columns.includes(column),
        )
        .map(({ name }) => name)
        .join(' with ');
    const asked = spelled(given.map(({ column }) => column));
    const declared = combinations.map(({ columns }) => spelled(columns));
    const others = [...new Set(declared)].filter((one) => one && one !== asked);
    return badInput(
      `A list cannot be filtered by ${asked}: only by ${others.join(', or by ')}.`,
    );
  }
}

/**
 * Adds what a page itself does not tell: whether there are items on the side of
 * its cursor.
 *
 * @param readPage reads a page of the same list, elsewhere
 */
export async function withOtherEnd<Item extends { readonly id: Int64 }>(
  page: Page<Item>,
  { isBackward, place, shape }: Listing,
  readPage: (query: Partial<PageQuery>) => Promise<Page<Item>>,
) {
  if (!place && !isBackward) return page;
  const hasPrevious = page.hasNext;
  if (!place) return { ...page, hasNext: false, hasPrevious };
  const cursor = cursorBeside(place, shape);
  const edge = cursorAt(page, isBackward ? -1 : 0) ?? cursor;
  const beyond = isBackward
    ? { before: undefined, after: edge }
    : { after: undefined, before: edge };
  const others = { ...beyond, limit: 0, fromEnd: !isBackward };
  const hasMore = async () => (await readPage(others)).hasNext;
  return isBackward
    ? { ...page, cursor, hasNext: await hasMore(), hasPrevious }
    : { ...page, cursor, hasPrevious: hasMore };
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

function endsOf(table: Table, { ranges = [], prefixes = [] }: Lists): Filter[] {
  const end = (
    member: string,
    suffix: string,
    { slot, id }: Pick<(typeof rangeEnds)['gte' | 'lte'], 'slot' | 'id'>,
  ) => {
    const column = table.column(member);
    const name = `${member}_${suffix}`;
    return { name, column, kind: slot, slot, id, convert: column.write };
  };
  const ofRanges = ranges.flatMap((member) =>
    Object.entries(rangeEnds).map(([suffix, one]) => end(member, suffix, one)),
  );
  const last = (prefix: unknown) => `${prefix}${greatest}`;
  const ofPrefixes = prefixes.flatMap((member) => [
    end(member, 'prefix', { slot: 'from', id: int64.min }),
    { ...end(member, 'prefix', { slot: 'to', id: int64.max }), convert: last },
  ]);
  return [...ofRanges, ...ofPrefixes];
}

const isEnd = ({ id }: Filter) => id !== undefined;
const isNull = ({ kind }: Filter) => kind === 'null';

/** True for lists that share a statement with those by other filters. */
function isPlain({ conditions, ends }: Layout) {
  return ends.length === 0 && conditions.every(({ kind }) => kind === 'equal');
}

/** Each column has one filter, and a list one range. */
function assertOneEach(filters: Filter[]) {
  for (const [at, one] of filters.entries()) {
    const other = filters
      .slice(at + 1)
      .find(
        (next) =>
          next.slot === one.slot ||
          (isEnd(one) && isEnd(next) && next.column !== one.column),
      );
    if (other) throw excluding(one.name, other.name);
  }
}

/** True for filters by all of these columns and no other one. */
function areOf(filters: Filter[], columns: readonly Column[]) {
  return (
    filters.length === columns.length &&
    filters.every(({ column }) => columns.includes(column))
  );
}

function flattened(filter: Filter): Filter {
  if (filter.kind !== 'in') return filter;
  return { ...filter, kind: 'any' };
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
function valuesAmong({ conditions }: Shape, values: Slots) {
  let pages = 1;
  let more = 0;
  for (const { kind, slot } of conditions) {
    if (kind !== 'in') continue;
    const { length } = JSON.parse(`${values[slot]}`);
    pages *= length;
    more += length - 1;
  }
  if (pages > maxAmong)
    throw badInput(
      `The filters by several values have ${pages} combinations, at most ${maxAmong} are allowed.`,
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
  return (values: unknown) =>
    JSON.stringify([...new Set((values as unknown[]).map(write))]);
}

const least = `${int64.min}`;
const most = `${int64.max}`;
const beyond = (place?: Place) => (place ? `${place.id}` : least);

/** The greatest id before a place. */
function below(place?: Place) {
  if (!place) return most;
  return `${int64From(BigInt(place.id) - 1n) ?? least}`;
}

function excluding(one: string, other: string) {
  return badInput(`${one} and ${other} exclude each other.`);
}
