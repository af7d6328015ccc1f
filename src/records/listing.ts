import { StoreError } from '../errors.ts';
import { type Int64, int64 } from '../validation/int64.ts';
import {
  type Lists,
  maxAmong,
  membersOf,
  rangeEnds,
} from '../validation/list-query.ts';
import type { PageQuery } from '../validation/page.ts';
import { type Place, placeOf } from './cursor.ts';
import {
  type Column,
  type IndexOrder,
  parameterOf,
  type Table,
} from './table.ts';

/** A condition of a list on a column. */
export interface Condition {
  readonly column: Column;
  readonly kind: 'equal' | 'in' | 'null';
  /** The parameter with its value, or with several as JSON. */
  readonly slot: string;
}

/** What lists have in common that one statement reads. */
export interface Shape {
  readonly name: string;
  /** Names the shapes that one statement reads together. */
  readonly family: string;
  /** In the order of their index. */
  readonly conditions: readonly Condition[];
  /** True for a list of one item at most, by a unique key. */
  readonly isOne: boolean;
  /** Sorts the lists; undefined for the id. */
  readonly by: Column | undefined;
  readonly isDescending: boolean;
  /** Where they begin and end: a range, and the place of a cursor. */
  readonly bounds: ReadonlyArray<'from' | 'to' | 'place'>;
}

/** A list to be read. */
export interface Listing {
  readonly shape: Shape;
  readonly sort: string;
  readonly limit: number;
  /** The parameters of the statement, by their slots. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly place: Place | undefined;
  /** True for the items before a place, which are read in reverse. */
  readonly isBackward: boolean;
  /** How many values its filters have, beyond one for each. */
  readonly among: number;
}

type Query = Partial<PageQuery> & Readonly<Record<string, unknown>>;

type Bound = Shape['bounds'][number];

/** A parameter that a range begins or ends with. */
interface End {
  readonly name: string;
  readonly by: Column;
  readonly slot: 'from' | 'to';
  /** Items with its value are in the range from this id, or up to it. */
  readonly id: Int64;
  /** Comes after its value. */
  readonly suffix: string;
}

/** No text that begins with another one is greater than that and these. */
const greatest = '\u{10ffff}'.repeat(1000);

/** Reads what queries ask of a collection's lists. */
export class Listings {
  readonly #table: Table;
  readonly #filters: readonly Column[];
  readonly #orders: ReadonlyArray<Column | undefined>;
  readonly #combinations: readonly Column[][];
  /** The columns of each combination in the order of its index. */
  readonly #ordered = new Map<string, IndexOrder>();
  readonly #ends: readonly End[];
  readonly #shapes = new Map<string, Shape>();

  /**
   * @param owner the member by which lists of one owner are filtered
   * @throws Error with the indexes that the entity lacks
   */
  constructor(
    table: Table,
    lists: Lists,
    private readonly owner?: string,
  ) {
    const { filters, orders } = membersOf(lists);
    this.#table = table;
    this.#filters = filters.map((member) => table.column(member));
    this.#orders = [undefined, ...orders.map((one) => table.column(one))];
    this.#ends = endsOf(table, lists);
    const declared = lists.combinations?.map((members) =>
      this.#filters.filter(({ member }) => members.includes(member)),
    );
    this.#combinations = declared ? [[], ...declared] : subsets(this.#filters);
    for (const by of this.#orders) {
      const ordered = table.inOrderOfIndexes(this.#combinations, by);
      for (const [at, columns] of this.#combinations.entries())
        this.#ordered.set(nameOf(columns, by), ordered[at] as IndexOrder);
    }
  }

  /**
   * @throws StoreError BAD_USER_INPUT for a list that its collection does not
   *   declare, or a cursor of another order
   */
  read(query: Query): Listing {
    const { limit = 0, after, before, fromEnd = before !== undefined } = query;
    if (after !== undefined && before !== undefined)
      throw excluding('after', 'before');
    const ends = this.#endsIn(query);
    const sort = query.sort ?? ends[0]?.by.member ?? 'id';
    const by = this.#orderOf(sort, ends);
    const cursor = after ?? before;
    const place =
      cursor === undefined
        ? undefined
        : placeOf(cursor, {
            sort,
            parameter: after === undefined ? 'before' : 'after',
          });
    const isDescending = sort.endsWith('_desc') !== fromEnd;
    const least = place?.id ?? int64.min;
    const values: Record<string, unknown> = {
      place: place?.value,
      place_id: `${isDescending ? greatestBelow(place?.id) : least}`,
    };
    for (const { name, slot, id, suffix } of ends) {
      const value = parameterOf(query[name]);
      values[slot] = suffix ? `${value}${suffix}` : value;
      values[`${slot}_id`] = `${id}`;
    }
    const given = this.#conditionsIn(query, values);
    const { conditions, isOne } = this.#inOrder(given, by);
    // PostgreSQL would sort all items without the value (incremental sort).
    const nothing = by && given.length > 1 && given.find(isNull);
    if (nothing)
      throw refusal(
        `${nothing.column.member}_is_null goes with other filters in the order of id only, not of ${sort}.`,
      );
    const hasPlace = place !== undefined || by === undefined;
    const bounds = ends.map(({ slot }): Bound => slot);
    if (hasPlace) bounds.push('place');
    const shape = this.#shapeOf({
      conditions,
      isOne,
      by,
      isDescending,
      bounds,
    });
    const counts = conditions
      .filter(({ kind }) => kind === 'in')
      .map(({ slot }) => JSON.parse(`${values[slot]}`).length);
    const pages = counts.reduce((product, count) => product * count, 1);
    if (pages > maxAmong)
      throw refusal(
        `The filters by several values have ${pages} combinations, at most ${maxAmong} are allowed.`,
      );
    const among = counts.reduce((sum, count) => sum + count - 1, 0);
    return { shape, sort, limit, values, place, isBackward: fromEnd, among };
  }

  /**
   * The shapes that one statement reads together: all lists in an order without
   * ranges and other filters than by one value, those of one owner apart; else
   * lists of one shape.
   */
  familyOf(shape: Shape): Shape[] {
    if (shape.family === shape.name) return [shape];
    const isOwned = this.#isOwned(shape.conditions.map(({ column }) => column));
    const combinations = this.#combinations.filter(
      (columns) => this.#isOwned(columns) === isOwned,
    );
    return combinations.map((columns) => {
      const equal = columns.map(
        (column): Condition => ({
          column,
          kind: 'equal',
          slot: this.#slotOf(column),
        }),
      );
      return this.#shapeOf({ ...shape, ...this.#inOrder(equal, shape.by) });
    });
  }

  #isOwned(columns: readonly Column[]): boolean {
    return columns.some(({ member }) => member === this.owner);
  }

  #slotOf(column: Column): string {
    return `filter_${this.#filters.indexOf(column)}`;
  }

  #shapeOf(shape: Omit<Shape, 'name' | 'family'>): Shape {
    const { conditions, by, isDescending, bounds } = shape;
    const order = `${by?.member ?? 'id'}${isDescending ? '_desc' : ''}`;
    const used = conditions.map(({ slot, kind }) => `${slot}_${kind}`);
    const name = [order, ...bounds, 'by', ...used].join(' ');
    const isPlain =
      bounds.every((bound) => bound === 'place') &&
      conditions.every(({ kind }) => kind === 'equal');
    const isOwned = this.#isOwned(conditions.map(({ column }) => column));
    const plain = [isOwned ? 'own' : 'all', order, ...bounds].join(' ');
    const family = isPlain ? plain : name;
    const known = this.#shapes.get(name) ?? { ...shape, name, family };
    this.#shapes.set(name, known);
    return known;
  }

  /** The ends of the list's range: at most one of each side. */
  #endsIn(query: Query): End[] {
    const ends = this.#ends.filter(({ name }) => query[name] != null);
    for (const [at, { name, by, slot }] of ends.entries()) {
      const other = ends
        .slice(at + 1)
        .find((end) => end.by !== by || end.slot === slot);
      if (other) throw excluding(name, other.name);
    }
    return ends;
  }

  /** @throws Error for an order that is not declared */
  #orderOf(sort: string, [end]: End[]): Column | undefined {
    const sorted = sort.replace(/_desc$/, '');
    const by = this.#orders.find((column) => column?.member === sorted);
    if (!by && sorted !== 'id')
      throw new Error(
        `${this.#table.name} is not sorted by ${sort}: name it in the orders of its Records.`,
      );
    if (!end || end.by === by) return by;
    const { member } = end.by;
    throw refusal(
      `${end.name} goes with the order ${member} or ${member}_desc, not ${sort}.`,
    );
  }

  #conditionsIn(query: Query, values: Record<string, unknown>): Condition[] {
    return this.#filters.flatMap((column) => {
      const { member } = column;
      const slot = this.#slotOf(column);
      const names = {
        equal: member,
        in: `${member}_in`,
        null: `${member}_is_null`,
      };
      const [kind, other] = kinds.filter((one) => query[names[one]] != null);
      if (!kind) return [];
      if (other) throw excluding(names[kind], names[other]);
      const value = query[names[kind]];
      if (kind === 'null' && value === false)
        throw refusal(`${names.null} must be true.`);
      values[slot] =
        kind === 'in' ? jsonOf(value as unknown[]) : parameterOf(value);
      return [{ column, kind, slot }];
    });
  }

  /** @throws StoreError BAD_USER_INPUT for a combination that is not declared */
  #inOrder(given: Condition[], by: Column | undefined) {
    const columns = given.map(({ column }) => column);
    const ordered = this.#ordered.get(nameOf(columns, by));
    if (!ordered) {
      // Clients do not filter by the owner.
      const named = [columns, ...this.#combinations].map((all) =>
        spelled(all.filter(({ member }) => member !== this.owner)),
      );
      const [asked, ...others] = new Set(named.filter(Boolean));
      throw refusal(
        `A list cannot be filtered by ${asked}: only by ${others.join(', or by ')}.`,
      );
    }
    const conditions = ordered.columns.map(
      (column) => given[columns.indexOf(column)] as Condition,
    );
    return { conditions, isOne: ordered.isOne };
  }
}

function endsOf(table: Table, { ranges = [], prefixes = [] }: Lists): End[] {
  const ofRanges = ranges.flatMap((member) =>
    Object.entries(rangeEnds).map(([end, { slot, id }]) => {
      const by = table.column(member);
      return { name: `${member}_${end}`, by, slot, id, suffix: '' };
    }),
  );
  const ofPrefixes = prefixes.flatMap((member): End[] => {
    const end = { name: `${member}_prefix`, by: table.column(member) };
    return [
      { ...end, slot: 'from', id: int64.min, suffix: '' },
      { ...end, slot: 'to', id: int64.max, suffix: greatest },
    ];
  });
  return [...ofRanges, ...ofPrefixes];
}

const isNull = ({ kind }: Condition) => kind === 'null';
const kinds = ['equal', 'in', 'null'] as const;

/** All of them, from none to all. */
function subsets(columns: readonly Column[]): Column[][] {
  return Array.from({ length: 2 ** columns.length }, (_, bits) =>
    columns.filter((_, at) => bits & (1 << at)),
  );
}

const spelled = (columns: readonly Column[]) =>
  columns.map(({ member }) => member).join(' with ');

function nameOf(columns: readonly Column[], by: Column | undefined): string {
  return [by, ...columns].map((column) => column?.member).join();
}

/** Distinct values as a JSON array of their texts. */
function jsonOf(values: unknown[]): string {
  return JSON.stringify([...new Set(values.map(parameterOf))]);
}

function greatestBelow(id: Int64 = int64.max + 1n): bigint {
  const greatest = BigInt(id) - 1n;
  return greatest < int64.min ? int64.min : greatest;
}

function refusal(message: string): StoreError {
  return new StoreError('BAD_USER_INPUT', message);
}

function excluding(one: string, other: string): StoreError {
  return refusal(`${one} and ${other} exclude each other.`);
}
