import { hash } from 'node:crypto';
import { escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import type { Int64 } from '../validation/int64.ts';
import { maxExactTotal } from '../validation/page.ts';
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

/** Rows that are in one range of an index. */
export interface Part {
  /** Filters in the order of their index. */
  readonly conditions: readonly Filter[];
  /** True for a list of one item at most, by a unique key. */
  readonly isOne: boolean;
}

/** What a statement reads. */
export interface Layout extends Part {
  /** Parts that the list has, too, of a caller of several audiences. */
  readonly others: readonly Part[];
  /** Sorts the lists before the id: one column, or none. */
  readonly by: readonly Column[];
  readonly isDescending: boolean;
  readonly ends: readonly Filter[];
  /** Lists by ids always have a place. */
  readonly hasPlace: boolean;
  /** The most items of a page. */
  readonly most: number;
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

/** The types of the parameters of a statement, by their slots. */
type Types = Record<string, string>;

/** Makes the statements of lists and totals. */
export class ListStatements {
  readonly #name: string;
  readonly #prepared = new Set<string>();

  constructor(private readonly table: Table) {
    this.#name = quoted(table.name);
  }

  /** One list. */
  page(layout: Layout) {
    const types = { ...typeOfLimit, ...typesIn(layout) };
    const list = this.#select(layout, numbered(types));
    const text = `select ${this.#aggregated(layout)} from (${list}) as item`;
    return this.#named('list', types, text);
  }

  /**
   * Lists of several shapes in one order, one row for each. A shape is chosen
   * by the filters that have a value.
   */
  pages(layouts: Layout[]) {
    const [first] = layouts as [Layout];
    const types: Types = Object.assign(
      { ...typeOfLimit },
      ...layouts.map(typesIn),
    );
    const slots = Object.keys(types);
    const filters = slots.filter((slot) => slot.startsWith('filter_'));
    // Branches instead of `wanted.filter is null or ...`: each uses an index,
    // and PostgreSQL skips the branches whose one-time filter is false.
    // Skipped branches are not free: those of another order would cost
    // PostgreSQL a sixth.
    const choosable = layouts.length > 1 ? filters : [];
    const branches = layouts.map((layout) => {
      const chosen = choosable.map((slot) => choiceOf(slot, layout));
      return `(${this.#select(layout, wanted, chosen)})`;
    });
    const arrays = Object.values(types).map(
      (type, at) => `$${at + 1}::${type}[]`,
    );
    const names = [...slots, '#at'].map((slot) => `"${slot}"`);
    const text = `select page.* from unnest(${arrays.join(', ')}) with ordinality
        as wanted (${names.join(', ')})
      cross join lateral (
        select ${this.#aggregated(first)} from (${branches.join(' union all ')}) as item
      ) as page
      order by wanted."#at"`;
    return this.#named('lists', types, text);
  }

  #named(kind: string, types: Types, text: string) {
    const digest = hash('sha256', text).slice(0, 16);
    const name = `${kind}_${this.table.name}_${digest}`;
    if (this.#prepared.size < mostPrepared) this.#prepared.add(name);
    const isRare = !this.#prepared.has(name);
    return { name, text, slots: Object.keys(types), isRare };
  }

  /**
   * How many items a list has, up to one more than is counted exactly; and
   * PostgreSQL's plan as JSON, with the estimated number of rows.
   */
  totals(layout: Layout) {
    const types = typesIn(layout);
    const parts = partsOf(layout).map((part) =>
      allOf(conditionsOf(part, numbered(types))),
    );
    const where = parts.join(' or ');
    const all = `select 1 from ${this.#name} where ${where}`;
    const count = `select count(*) from (${all} limit ${maxExactTotal + 1}) as item`;
    return {
      count: this.#named('count', types, count),
      estimate: this.#named('estimate', types, `explain (format json) ${all}`),
    };
  }

  /**
   * The rows of a list. Of several values (`in`) each has a page, because
   * PostgreSQL cannot merge them.
   *
   * @param chosen conditions for this list among others
   */
  #select(layout: Layout, given: Given, chosen: string[] = []) {
    const parts = partsOf(layout).map((part) =>
      this.#selectPart(part, given, chosen),
    );
    if (parts.length === 1) return `${parts[0]}`;
    // Each part uses its index, and a row of several is one.
    const union = parts.map((part) => `(${part})`).join(' union ');
    const order = sorted(keysOf(layout.by), layout);
    return `select * from (${union}) as item order by ${order} limit ${given('limit')}`;
  }

  #selectPart(layout: Layout, given: Given, chosen: string[]) {
    const { conditions, by } = layout;
    const filters = conditions
      .filter(({ kind }) => kind !== 'any')
      .map(({ column }) => column.name);
    const apart = countApart(layout);
    const where = allOf([...chosen, ...conditionsOf(layout, given, apart)]);
    const names = this.table.columns.map(({ name }) => name).join(', ');
    const limit = `limit ${given('limit')}`;
    // For a limit that it does not know PostgreSQL plans to read a tenth of the
    // table, which it would rather sort.
    const planningLimit = layout.most + 1;
    const page = `select * from (select ${names} from ${this.#name} where ${where}
      order by ${sorted([...filters, ...keysOf(by)], layout)} limit ${planningLimit}) as item ${limit}`;
    const several = conditions.filter(isOf('in'));
    if (several.length === 0) return page;
    const values = several.map(
      ({ slot }) => `${valuesIn(given(slot))} as "#${slot}" ("#value")`,
    );
    return `select item.* from ${values.join(' cross join ')}
      cross join lateral (${page}) as item order by ${sorted(keysOf(by), layout)} ${limit}`;
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
      const { name, text, isSafeToJoin } = column;
      if (!isSafeToJoin) return `json_agg(${text}) as ${name}`;
      return `string_agg(coalesce(${text}, ''), ',') as ${name}`;
    });
    const order = by.map(({ cursor }) => `json_agg(${cursor}) as "#order"`);
    return [...columns, ...order].join(', ');
  }
}

/** SQL for the value of a slot. */
type Given = (slot: string) => string;

const typeOfLimit = { limit: 'int' };
function typesIn(layout: Layout) {
  const { ends, hasPlace, by } = layout;
  const types: Types = {};
  const all = partsOf(layout).flatMap(({ conditions }) => conditions);
  for (const { slot, kind, column } of all) {
    if (kind === 'null') continue;
    const isSeveral = kind === 'in' || kind === 'any';
    types[slot] = isSeveral ? 'text' : column.type;
  }
  for (const { type } of by) {
    for (const { slot } of ends) types[slot] = type;
    if (hasPlace) types.place = type;
  }
  if (hasPlace) types.place_id = 'bigint';
  return types;
}

function partsOf(layout: Layout): Layout[] {
  const others = layout.others.map((part) => ({ ...layout, ...part }));
  return [layout, ...others];
}

function sorted(keys: string[], { isDescending }: Layout) {
  const direction = isDescending ? ' desc' : '';
  const directed = keys.map((key) => `${key}${direction}`);
  return directed.join(', ');
}

function numbered(types: Types): Given {
  const slots = Object.keys(types);
  return (slot) => `$${slots.indexOf(slot) + 1}::${types[slot]}`;
}

/** The value of a list that is read together with others. */
function wanted(slot: string) {
  return `wanted."${slot}"`;
}

/** Whether a list has a value for this filter, as those of the layout have. */
function choiceOf(slot: string, layout: Layout) {
  const isUsed = slot in typesIn(layout);
  return `${wanted(slot)} is ${isUsed ? 'not null' : 'null'}`;
}

function valuesIn(json: string) {
  return `json_array_elements_text(${json}::json)`;
}

function allOf(conditions: string[]) {
  return conditions.join(' and ') || 'true';
}

export function isOf(kind: Filter['kind']) {
  return (filter: Filter) => filter.kind === kind;
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
 * @returns how many filters are before those in the row
 */
function countApart({ conditions, by, ends, isDescending, isOne }: Layout) {
  const end = isDescending ? 'from' : 'to';
  const hasEnd = ends.some(isOf(end));
  const isByAny = conditions.some(isOf('any'));
  const isOfOrder = conditions.some(
    ({ column }) => by.includes(column) && !column.isFolded,
  );
  const all = conditions.length;
  if (isOne || hasEnd || isByAny || isOfOrder) return all;
  const upToNull = 1 + conditions.findLastIndex(isOf('null'));
  const isById = by.length === 0;
  return isById ? Math.max(upToNull, all - 1) : upToNull;
}

/** @param apart how many filters are not in a row with the order */
function conditionsOf(
  layout: Layout,
  given: Given,
  apart = layout.conditions.length,
) {
  const { conditions } = layout;
  const equations = conditions
    .slice(0, apart)
    .map((filter) => equation(filter, given));
  const inRow = conditions.slice(apart);
  return [...equations, ...comparisons(layout, given, inRow)];
}

function equation(filter: Filter, given: Given) {
  const { name } = filter.column;
  if (filter.kind === 'null') return `${name} is null`;
  return `${name} = ${operandOf(filter, given)}`;
}

/** What the column of a filter equals. */
function operandOf({ kind, slot, column }: Filter, given: Given) {
  const { type } = column;
  if (kind === 'in') return `"#${slot}"."#value"::${type}`;
  if (kind !== 'any') return given(slot);
  const values = `${valuesIn(given(slot))} as values ("#value")`;
  return `any (array(select "#value"::${type} from ${values}))`;
}

/**
 * Where a list begins and ends, as comparisons of rows.
 *
 * @param filters those before the order in the index
 */
function comparisons(layout: Layout, given: Given, filters: Filter[]) {
  const order = keysOf(layout.by);
  const keys = [...filters.map(({ column }) => column.name), ...order];
  const values = filters.map((filter) => operandOf(filter, given));
  const from = boundAt('from', layout, given);
  const to = boundAt('to', layout, given);
  const lower = [...values, ...from];
  const upper = [...values, ...to];
  const hasFilters = filters.length > 0;
  const conditions: string[] = [];
  // PostgreSQL expects no rows of `(status, id) > ('sold', 7)` where no status
  // is greater.
  const above = hasFilters ? '>=' : '>';
  if (lower.length > 0) conditions.push(comparison(keys, above, lower));
  if (hasFilters && from.length > 0)
    conditions.push(comparison(order, '<>', from));
  if (upper.length > 0) conditions.push(comparison(keys, '<=', upper));
  return conditions;
}

/** Compares the first keys with as many values. */
function comparison(keys: string[], operator: string, values: string[]) {
  const compared = keys.slice(0, values.length);
  return `${row(compared)} ${operator} ${row(values)}`;
}

/** The values at one side of a list: of its range, or of its place. */
function boundAt(side: 'from' | 'to', layout: Layout, given: Given) {
  const { by, ends, hasPlace, isDescending } = layout;
  const end = ends.find(isOf(side));
  const ofRange = end ? endOf(end, given) : [];
  const start = isDescending ? 'to' : 'from';
  if (!hasPlace || side !== start) return ofRange;
  const ofOrder = by.map((column) => collated(given('place'), column));
  const place = [...ofOrder, given('place_id')];
  return end ? inner(ofRange, place, side) : place;
}

/** By which a list is sorted. */
function keysOf(by: readonly Column[]) {
  const keys = by.map(({ key }) => key);
  return [...keys, 'id'];
}

function collated(value: string, { isFolded }: Column) {
  return isFolded ? `${value} collate "C"` : value;
}

function row(values: string[]) {
  return `(${values.join(', ')})`;
}

/** The value and the id of an end. */
function endOf({ column, slot, id }: Filter, given: Given) {
  const value = given(slot);
  const folded = column.isFolded ? `lower(${value})` : value;
  return [collated(folded, column), `'${id}'::bigint`];
}

const shorter = {
  from: { choice: 'greatest', operator: '>' },
  to: { choice: 'least', operator: '<' },
};

/** The one of two ends that makes the list shorter. */
function inner(one: string[], other: string[], side: 'from' | 'to') {
  const { choice, operator } = shorter[side];
  const [value, id] = one;
  const [otherValue, otherId] = other;
  const isOne = `${row(one)} ${operator} ${row(other)}`;
  return [
    `${choice}(${value}, ${otherValue})`,
    `case when ${isOne} then ${id} else ${otherId} end`,
  ];
}
