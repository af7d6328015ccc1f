import { createHash } from 'node:crypto';
import { escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import type { Int64 } from '../validation/int64.ts';
import { maxExactTotal, pageLimit } from '../validation/page.ts';
import type { Column, Table } from './table.ts';

/** A parameter by which a list is filtered. */
export interface Filter {
  readonly name: string;
  readonly column: Column;
  /**
   * A range has an end or two: `from` and `to`. With several values: `in` reads
   * one page for each, `any` one page of all.
   */
  readonly kind: 'equal' | 'in' | 'any' | 'null' | 'from' | 'to';
  /** The parameter of the statement with its value. */
  readonly slot: string;
  /** Converts its value: several ones to JSON. */
  readonly convert: (value: unknown) => unknown;
  /**
   * Of an end: the id that decides which items with exactly this value are
   * listed.
   */
  readonly id?: Int64;
}

/** What a statement reads. */
export interface Layout {
  /** Filters in the order of their index. */
  readonly conditions: readonly Filter[];
  /** True for a list of one item at most, by a unique key. */
  readonly isOne: boolean;
  /** Sorts the lists before the id: one column, or none. */
  readonly by: readonly Column[];
  readonly isDescending: boolean;
  readonly ends: readonly Filter[];
  /** Lists by ids always have a place. */
  readonly hasPlace: boolean;
}

/**
 * How many statements of a collection are prepared: PostgreSQL keeps each in
 * every connection, and clients choose the filters.
 */
const mostPrepared = 200;

/** A statement with the parameters that it takes, in their order. */
export interface ListStatement extends Statement {
  readonly slots: readonly string[];
}

interface Slot {
  readonly name: string;
  readonly type: string;
}

/** Makes the statements of lists and totals. */
export class ListStatements {
  readonly #name: string;
  readonly #prepared = new Set<string>();

  constructor(private readonly table: Table) {
    this.#name = quoted(table.name);
  }

  /** One list. */
  page(layout: Layout) {
    const slots = [limitSlot, ...slotsOf(layout)];
    const page = this.#select(layout, numbered(slots));
    const text = `select ${this.#aggregated(layout)} from (${page}) as item`;
    return this.#named('list', slots, text);
  }

  /**
   * Lists of several shapes in one order, one row for each. A shape is chosen
   * by the filters that have a value.
   */
  pages(layouts: Layout[]) {
    const [first] = layouts as [Layout];
    const all = [limitSlot, ...layouts.flatMap(slotsOf)];
    const slots = [...new Map(all.map((slot) => [slot.name, slot])).values()];
    const given = (name: string) => `wanted."${name}"`;
    const filters = slots.filter(({ name }) => name.startsWith('filter_'));
    // Branches instead of `wanted.filter is null or ...`: each uses an index,
    // and PostgreSQL skips the branches whose one-time filter is false.
    // Skipped branches are not free: those of another order would cost
    // PostgreSQL a sixth.
    const branches = layouts.map((layout) => {
      const used = slotsOf(layout).map(({ name }) => name);
      const chosen = filters.map(
        ({ name }) =>
          `${given(name)} is ${used.includes(name) ? 'not null' : 'null'}`,
      );
      const isOnly = layouts.length === 1;
      return `(${this.#select(layout, given, isOnly ? [] : chosen)})`;
    });
    const arrays = slots.map(({ type }, at) => `$${at + 1}::${type}[]`);
    const names = [...slots.map(({ name }) => `"${name}"`), '"#at"'];
    const text = `select page.* from unnest(${arrays.join(', ')}) with ordinality
        as wanted (${names.join(', ')})
      cross join lateral (
        select ${this.#aggregated(first)} from (${branches.join(' union all ')}) as item
      ) as page
      order by wanted."#at"`;
    return this.#named('lists', slots, text);
  }

  #named(kind: string, slots: Slot[], text: string) {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
    const name = `${kind}_${this.table.name}_${hash}`;
    if (this.#prepared.size < mostPrepared) this.#prepared.add(name);
    const isRare = !this.#prepared.has(name);
    return { name, text, slots: slots.map(({ name }) => name), isRare };
  }

  /**
   * How many items a list has, up to one more than is counted exactly; and
   * PostgreSQL's plan as JSON, with the estimated number of rows.
   */
  totals(layout: Layout) {
    const slots = slotsOf(layout);
    const given = numbered(slots);
    const conditions = layout.conditions.map((filter) =>
      equation(filter, anyOf(filter, given)),
    );
    const where = allOf(...conditions, ...comparisons(layout, given));
    const all = `select 1 from ${this.#name} where ${where}`;
    const count = `select count(*) from (${all} limit ${maxExactTotal + 1}) as item`;
    return {
      count: this.#named('count', slots, count),
      estimate: this.#named('estimate', slots, `explain (format json) ${all}`),
    };
  }

  /**
   * The last filters are compared in one row with the order, for example
   * `(status, id) > ($3, $1)`: only an index on both has these rows in a range.
   * For `status = $3 and id > $1` PostgreSQL may scan the primary key, and
   * discard most rows. Which filters are in the row:
   *
   * - by ids the last one, because only the first column of a row ends a scan; so
   *   none in a range that ends
   * - by another member all, or PostgreSQL would sort the rows of the first
   * - none of a list of one item, by `any`, or by the member of the order
   * - none up to a null, which no comparison of rows has
   *
   * Of several values (`in`) each has a page, because PostgreSQL cannot merge
   * them.
   */
  #select(layout: Layout, given: Given, chosen: string[] = []) {
    const { conditions, by, ends, isDescending, isOne } = layout;
    const among = conditions.filter(({ kind }) => kind === 'in');
    const isFlat = conditions.some(({ kind }) => kind === 'any');
    const operand = (filter: Filter) => {
      if (filter.kind !== 'in') return anyOf(filter, given);
      return `"#${filter.slot}"."#value"::${filter.column.type}`;
    };
    const nulls = conditions.findLastIndex(({ kind }) => kind === 'null');
    const end = isDescending ? 'from' : 'to';
    const hasEnd = ends.some(({ kind }) => kind === end);
    const isOfOrder = conditions.some(
      ({ column }) => by.includes(column) && !column.isFolded,
    );
    const isApart = isOne || hasEnd || isFlat || isOfOrder;
    // In an order by a member, all may be in rows.
    const last = by.length > 0 ? 0 : conditions.length - 1;
    const others = isApart ? conditions.length : Math.max(nulls + 1, last);
    const equal = conditions
      .slice(0, others)
      .map((filter) => equation(filter, operand(filter)));
    const inRows = conditions.slice(others).map((filter) => ({
      name: filter.column.name,
      value: operand(filter),
    }));
    const within = comparisons(layout, given, inRows);
    const where = allOf(...chosen, ...equal, ...within);
    const direction = isDescending ? ' desc' : '';
    const order = keysOf(by).map((key) => `${key}${direction}`);
    const filters = conditions
      .filter(({ kind }) => kind !== 'any')
      .map(({ column: { name } }) => `${name}${direction}`);
    const names = this.table.columns.map(({ name }) => name).join(', ');
    const limit = `limit ${given(limitSlot.name)}`;
    const page = `select * from (select ${names} from ${this.#name} where ${where}
      order by ${[...filters, ...order].join(', ')} limit ${planningLimit}) as item ${limit}`;
    if (among.length === 0) return page;
    const values = among.map(
      ({ slot }) => `${valuesIn(given(slot))} as "#${slot}" ("#value")`,
    );
    return `select item.* from ${values.join(' cross join ')}
      cross join lateral (${page}) as item order by ${order.join(', ')} ${limit}`;
  }

  /**
   * A list as one row with one text per column. That costs PostgreSQL as much
   * as separate rows, and this process a third. Values that are safe to join are
   * joined by commas, with an empty text for null; other columns are JSON
   * arrays. Aggregates without `order by` process rows in the order of the
   * subquery (PostgreSQL's manual, section 9.21).
   */
  #aggregated({ by }: Layout) {
    const columns = this.table.columns.map((column) => {
      const { name, text, isSafeToJoin, isNullable } = column;
      if (!isSafeToJoin) return `json_agg(${text}) as ${name}`;
      const joined = isNullable ? `coalesce(${text}, '')` : text;
      return `string_agg(${joined}, ',') as ${name}`;
    });
    const order = by.map(({ key }) => `json_agg((${key})::text) as "#order"`);
    return [...columns, ...order].join(', ');
  }
}

/** SQL for the value of a slot. */
type Given = (slot: string) => string;

const limitSlot = { name: 'limit', type: 'int' };
/**
 * The most rows of a page. For a limit that it does not know PostgreSQL plans to
 * read a tenth of the table, which it would rather sort.
 */
const planningLimit = pageLimit.max + 1;

const valuesIn = (json: string) => `json_array_elements_text(${json}::json)`;

function numbered(slots: Slot[]): Given {
  const names = slots.map(({ name }) => name);
  return (slot) => {
    const at = names.indexOf(slot);
    return `$${at + 1}::${slots[at]?.type}`;
  };
}

const allOf = (...conditions: string[]) => conditions.join(' and ') || 'true';

/** The value of a filter, or any that it may have. */
function anyOf({ kind, slot, column }: Filter, given: Given) {
  if (kind !== 'any') return given(slot);
  const values = `select "#value"::${column.type} from ${valuesIn(given(slot))} as values ("#value")`;
  return `any (array(${values}))`;
}

function equation({ kind, column: { name } }: Filter, value: string) {
  if (kind === 'null') return `${name} is null`;
  return `${name} = ${value}`;
}

function slotsOf({ conditions, ends, hasPlace, by }: Layout): Slot[] {
  const filters = conditions
    .filter(({ kind }) => kind !== 'null')
    .map(({ slot, kind, column }) => ({
      name: slot,
      type: /in|any/.test(kind) ? 'text' : column.type,
    }));
  const values = [
    ...ends.map(({ slot }) => slot),
    ...(hasPlace ? ['place'] : []),
  ];
  return [
    ...filters,
    ...by.flatMap(({ type }) => values.map((name) => ({ name, type }))),
    ...(hasPlace ? [{ name: 'place_id', type: 'bigint' }] : []),
  ];
}

/** The values at one side of a list: of its range, or of its place. */
function boundAt(side: 'from' | 'to', layout: Layout, given: Given) {
  const { by, ends, hasPlace, isDescending } = layout;
  const end = ends.find(({ kind }) => kind === side);
  const ofRange = end && endOf(end, given);
  const start = isDescending ? 'to' : 'from';
  if (!hasPlace || side !== start) return ofRange;
  const ofOrder = by.map(({ isFolded }) => collated(given('place'), isFolded));
  const place = [...ofOrder, given('place_id')];
  return ofRange ? inner(ofRange, place, side) : place;
}

/**
 * Where a list begins and ends, as comparisons of rows.
 *
 * @param filters those before the order in the index
 */
function comparisons(
  layout: Layout,
  given: Given,
  filters: Array<{ name: string; value: string }> = [],
) {
  const keys = keysOf(layout.by);
  const names = filters.map(({ name }) => name);
  const values = filters.map(({ value }) => value);
  const from = boundAt('from', layout, given);
  const to = boundAt('to', layout, given);
  const lower = [...values, ...(from ?? [])];
  const upper = [...values, ...(to ?? [])];
  const rowOf = ({ length }: string[]) =>
    row([...names, ...keys].slice(0, length));
  const operator = names.length > 0 ? '>=' : '>';
  const conditions: string[] = [];
  // PostgreSQL expects no rows of `(status, id) > ('sold', 7)` where no status
  // is greater.
  if (lower.length > 0)
    conditions.push(`${rowOf(lower)} ${operator} ${row(lower)}`);
  if (from && names.length > 0) conditions.push(`${row(keys)} <> ${row(from)}`);
  if (upper.length > 0) conditions.push(`${rowOf(upper)} <= ${row(upper)}`);
  return conditions;
}

/** By which a list is sorted. */
const keysOf = (by: readonly Column[]) => [...by.map(({ key }) => key), 'id'];

const collated = (value: string, isFolded: boolean) =>
  isFolded ? `${value} collate "C"` : value;

const row = (values: string[]) => `(${values.join(', ')})`;

/** The value and the id of an end. */
function endOf({ column, slot, id }: Filter, given: Given) {
  const { isFolded } = column;
  const value = isFolded ? `lower(${given(slot)})` : given(slot);
  return [collated(value, isFolded), `'${id}'::bigint`];
}

const shorter = {
  from: { choice: 'greatest', operator: '>' },
  to: { choice: 'least', operator: '<' },
};

/** The one of two ends that makes the list shorter. */
function inner(one: string[], other: string[], side: 'from' | 'to') {
  const { choice, operator } = shorter[side];
  const isOne = `${row(one)} ${operator} ${row(other)}`;
  return [
    `${choice}(${one[0]}, ${other[0]})`,
    `case when ${isOne} then ${one[1]} else ${other[1]} end`,
  ];
}
