/**
 * Makes the statements of lists: a list is one row, with a text for each column.
 * The first page of all pets:
 *
 *   select string_agg(coalesce("id"::text, ''), ',') as "id",
 *     json_agg("name"::text) as "name",
 *     string_agg(coalesce("category_id"::text, ''), ',') as "category_id",
 *     string_agg(coalesce("status"::text, ''), ',') as "status"
 *   from (
 *     select * from (
 *       select "id", "name", "category_id", "status" from "pet"
 *       where (id) > ($2::bigint) order by id limit 101
 *     ) as item limit $1::int
 *   ) as item
 *
 * Pets of a status, after one of them:
 *
 *   select string_agg(coalesce("id"::text, ''), ',') as "id",
 *     json_agg("name"::text) as "name",
 *     string_agg(coalesce("category_id"::text, ''), ',') as "category_id",
 *     string_agg(coalesce("status"::text, ''), ',') as "status"
 *   from (
 *     select * from (
 *       select "id", "name", "category_id", "status" from "pet"
 *       where ("status", id) >= ($2::text, $3::bigint)
 *         and (id) <> ($3::bigint) and ("status") <= ($2::text)
 *       order by "status", id limit 101
 *     ) as item limit $1::int
 *   ) as item
 *
 * Toys of several kinds by name, descending, after one of them (a module of the
 * tests):
 *
 *   select string_agg(coalesce("id"::text, ''), ',') as "id",
 *     json_agg("name"::text) as "name",
 *     string_agg(coalesce("kind"::text, ''), ',') as "kind",
 *     json_agg("note"::text) as "note",
 *     string_agg(coalesce(case when "made_at"
 *       not between '0001-01-01T00:00:00Z' and '9999-12-31T23:59:59.999Z'
 *       then 'beyond' else (extract(epoch from
 *         date_trunc('milliseconds', "made_at")) * 1000)::bigint::text
 *       end, ''), ',') as "made_at",
 *     json_agg((lower("name") collate "C")::text) as "#order"
 *   from (
 *     select item.*
 *     from json_array_elements_text($2::text::json) as "#filter_0" ("#value")
 *     cross join lateral (
 *       select * from (
 *         select "id", "name", "kind", "note", "made_at" from "toy"
 *         where ("kind") >= ("#filter_0"."#value"::text)
 *           and ("kind", lower("name") collate "C", id)
 *             <= ("#filter_0"."#value"::text, $3::text collate "C", $4::bigint)
 *         order by "kind" desc, lower("name") collate "C" desc, id desc
 *         limit 101
 *       ) as item limit $1::int
 *     ) as item order by lower("name") collate "C" desc, id desc limit $1::int
 *   ) as item
 */

import { escapeIdentifier as quoted } from 'pg';
import { type Int64, int64, int64From } from '../../validation/int64.ts';
import { maxExactTotal } from '../../validation/page.ts';
import type { Column, Table } from '../rows/table.ts';
import { type Filter, isOf } from './filters.ts';

/** What the SQL of a list is made of: its rows, and their order. */
export interface Layout {
  /**
   * The rows of a list are those of one range of an index, or of several: those
   * of a caller of several audiences.
   */
  readonly parts: ReadonlyArray<{
    /** Filters in the order of their index. */
    readonly conditions: readonly Filter[];
    /** How many of them are never in a row with the order. */
    readonly apart: number;
    /** True where they leave few rows, which are read and sorted. */
    readonly isShort: boolean;
  }>;
  readonly sort: string;
  /** Sorts the lists before the id: one column, or none. */
  readonly by: readonly Column[];
  readonly isDescending: boolean;
  readonly ends: readonly Filter[];
  /** Lists by ids always have a place. */
  readonly hasPlace: boolean;
  /** The most items of a page. */
  readonly most: number;
  /** Conditions on other rows, in which `{0}` is the first value. */
  readonly through: readonly string[];
}

/** One list, as a row. */
export function pageStatement(table: Table, layout: Layout) {
  const types = { ...typeOfLimit, ...typesIn(layout) };
  const list = rowsOf(table, layout, numbered(types));
  const text = `select ${aggregated(table, layout)} from (${list}) as item`;
  return { kind: 'list', types, text };
}

/**
 * Lists of several shapes in one order, one row for each. A shape is chosen by
 * the filters that have a value.
 */
export function pagesStatement(table: Table, layouts: readonly Layout[]) {
  const [first] = layouts as [Layout];
  const types = Object.assign({ ...typeOfLimit }, ...layouts.map(typesIn));
  const slots = Object.keys(types);
  const filters = slots.filter((slot) => slot.startsWith('filter_'));
  // Branches instead of `filter is null or ...`: each uses an index, and
  // PostgreSQL skips the branches whose one-time filter is false. Skipped
  // branches are not free: those of another order would cost PostgreSQL a
  // sixth.
  const choosable = layouts.length > 1 ? filters : [];
  const branches = layouts.map((layout) => {
    const own = typesIn(layout);
    const chosen = choosable.map(
      (slot) => `${wanted(slot)} is ${slot in own ? 'not null' : 'null'}`,
    );
    return `(${rowsOf(table, layout, wanted, chosen)})`;
  });
  const arrays = slots.map((slot, at) => `$${at + 1}::${types[slot]}[]`);
  const names = [...slots, '#at'].map((slot) => `"${slot}"`);
  const text = `select page.* from unnest(${arrays.join(', ')}) with ordinality
        as "#wanted" (${names.join(', ')})
      cross join lateral (
        select ${aggregated(table, first)} from (${branches.join(' union all ')}) as item
      ) as page
      order by "#wanted"."#at"`;
  return { kind: 'lists', types, text };
}

/**
 * The same of a sharded table, which refuses a lateral join: for filters by
 * several values it may sort all their rows.
 */
export function flattened(layout: Layout): Layout {
  const parts = layout.parts.map(({ conditions, apart }) => ({
    conditions: conditions.map((filter): Filter => {
      if (filter.kind !== 'in') return filter;
      return { ...filter, kind: 'any' };
    }),
    apart,
    // Citus would read a part after the other.
    isShort: false,
  }));
  return { ...layout, parts };
}

/** How many items a list has, up to one more than is counted exactly. */
export function countStatement(table: Table, layout: Layout) {
  const { types, text } = allOf(table, layout);
  const count = `select count(*) from (${text} limit ${maxExactTotal + 1}) as item`;
  return { kind: 'count', types, text: count };
}

/** PostgreSQL's plan as JSON, with the estimated number of rows. */
export function estimateStatement(table: Table, layout: Layout) {
  const { types, text } = allOf(table, layout);
  return { kind: 'estimate', types, text: `explain (format json) ${text}` };
}

function allOf(table: Table, layout: Layout) {
  const types = typesIn(layout);
  const given = numbered(types);
  const parts = rangesOf(flattened(layout)).map((range) =>
    where(conditionsOf(range, given, range.conditions.length)),
  );
  const text = `select 1 from ${quoted(table.name)} where ${parts.join(' or ')}`;
  return { types, text };
}

/**
 * The rows of a list. Of several values (`in`) each has a page, because
 * PostgreSQL cannot merge them.
 *
 * @param given SQL for the value of a slot
 * @param chosen conditions for this list among others
 */
function rowsOf(
  table: Table,
  layout: Layout,
  given: typeof wanted,
  chosen: string[] = [],
) {
  const parts = rangesOf(layout).map((range) =>
    rowsIn(table, range, given, chosen),
  );
  if (parts.length === 1) return `${parts[0]}`;
  // Each part uses its index, and a row of several is one.
  const union = parts.map((part) => `(${part})`).join(' union ');
  return `select * from (${union}) as item order by ${orderOf(layout)} limit ${given('limit')}`;
}

function rowsIn(
  { name, columns }: Table,
  range: Range,
  given: typeof wanted,
  chosen: string[],
) {
  const { conditions } = range;
  const filters = conditions
    .filter(({ kind }) => kind !== 'any')
    .map(({ column }) => column.name);
  const own = conditionsOf(range, given, countApart(range));
  const sorted = range.by.filter((one) => !columns.includes(one));
  const names = [...columns, ...sorted].map(({ name }) => name).join(', ');
  const limit = `limit ${given('limit')}`;
  // For a limit that it does not know PostgreSQL plans to read a tenth of the
  // table, which it would rather sort.
  const planningLimit = range.most + 1;
  const order = orderOf(range, filters);
  const all = `${quoted(name)} where ${where([...chosen, ...own])}`;
  // Else PostgreSQL might read all rows in the order, in search of a few.
  const rows = range.isShort
    ? `(select * from ${all} offset 0) as ${quoted(name)}`
    : all;
  const page = `select * from (select ${names} from ${rows}
      order by ${order} limit ${planningLimit}) as item ${limit}`;
  const several = conditions.filter(isOf('in'));
  if (several.length === 0) return page;
  const values = several.map(
    ({ slot }) => `${valuesIn(given(slot))} as "#${slot}" ("#value")`,
  );
  return `select item.* from ${values.join(' cross join ')}
      cross join lateral (${page}) as item order by ${orderOf(range)} ${limit}`;
}

/**
 * A list as one row with one text per column. That costs PostgreSQL as much as
 * separate rows, and this process a third. Values that are safe to join are
 * joined by commas, with an empty text for null; other columns are JSON arrays.
 * Aggregates without `order by` process rows in the order of the subquery
 * (PostgreSQL's manual, section 9.21).
 */
function aggregated({ columns }: Table, { by }: Layout) {
  const texts = columns.map(({ name, text, isSafeToJoin }) => {
    if (!isSafeToJoin) return `json_agg(${text}) as ${name}`;
    return `string_agg(coalesce(${text}, ''), ',') as ${name}`;
  });
  const order = by.map(({ cursor }) => `json_agg(${cursor}) as "#order"`);
  return [...texts, ...order].join(', ');
}

const typeOfLimit = { limit: 'int' };

/** The types of the parameters of a statement, by their slots. */
function typesIn({ parts, ends, hasPlace, by, through }: Layout) {
  const types: Record<string, string> = {};
  const all = parts.flatMap(({ conditions }) => conditions);
  for (const { slot, kind, column } of all) {
    if (kind === 'null') continue;
    types[slot] = kind === 'equal' ? column.type : 'text';
  }
  for (const { type } of by) {
    for (const { slot } of ends) types[slot] = type;
    if (hasPlace) types.place = type;
  }
  if (hasPlace) types.place_id = 'bigint';
  for (const [, at] of `${through}`.matchAll(/\{(\d+)\}/g))
    types[`through_${at}`] = 'text';
  return types;
}

/** A layout, and one of its parts. */
type Range = ReturnType<typeof rangesOf>[number];

function rangesOf(layout: Layout) {
  return layout.parts.map((part) => ({ ...layout, ...part }));
}

/** @param first keys before those of the order */
function orderOf(layout: Layout, first: string[] = []) {
  const direction = layout.isDescending ? ' desc' : '';
  const keys = [...first, ...keysOf(layout)];
  return keys.map((key) => `${key}${direction}`).join(', ');
}

function numbered(types: Record<string, string>): typeof wanted {
  const slots = Object.keys(types);
  return (slot) => `$${slots.indexOf(slot) + 1}::${types[slot]}`;
}

/** The value of a list that is read together with others. */
function wanted(slot: string) {
  return `"#wanted"."${slot}"`;
}

function valuesIn(json: string) {
  return `json_array_elements_text(${json}::json)`;
}

function where(conditions: string[]) {
  return conditions.join(' and ') || 'true';
}

/**
 * The last filters are compared in one row with the order, for example
 * `(status, id) > ($3, $1)`: only an index on both has these rows in a range.
 * For `status = $3 and id > $1` PostgreSQL may scan the primary key, and
 * discard most rows. Which filters are in the row, and which before it:
 *
 * - by ids the last one: `kind = $3 and (status, id) > ($4, $1)`, because only
 *   the first column of a row ends a scan
 * - by another member all, or PostgreSQL would sort the rows of the first:
 *   `(kind, status, name, id) > ($3, $4, $5, $1)`
 * - after the last null: `room is null and (status, name, id) > ($3, $4, $1)`
 * - without those that the index lacks, which has few rows of the others
 * - none in a range that ends, with a filter `any`, or by the member of the
 *   order: `status = $3 and name = $4 and id > $1`
 *
 * @returns how many filters are before those in the row
 */
function countApart({ conditions, by, ends, isDescending, apart }: Range) {
  const end = isDescending ? 'from' : 'to';
  const hasEnd = ends.some(isOf(end));
  const isByAny = conditions.some(isOf('any'));
  const isOfOrder = conditions.some(
    ({ column }) => by.includes(column) && column.key === column.name,
  );
  const all = conditions.length;
  if (hasEnd || isByAny || isOfOrder) return all;
  const upToNull = 1 + conditions.findLastIndex(isOf('null'));
  const isById = by.length === 0;
  return Math.max(apart, upToNull, isById ? all - 1 : 0);
}

/** @param apart how many filters are not in a row with the order */
function conditionsOf(range: Range, given: typeof wanted, apart: number) {
  const { conditions } = range;
  const equations = conditions
    .slice(0, apart)
    .map((filter) => equation(filter, given));
  const inRow = conditions.slice(apart);
  const rows = comparisons(range, given, inRow);
  return [...equations, ...rows, ...seenIn(range, given)];
}

/** What a call sees of other rows. */
function seenIn({ through }: Layout, given: typeof wanted) {
  return through.map((condition) =>
    condition.replace(/\{(\d+)\}/g, (_, at) => given(`through_${at}`)),
  );
}

function equation(filter: Filter, given: typeof wanted) {
  const { name } = filter.column;
  if (filter.kind === 'null') return `${name} is null`;
  return `${name} = ${operandOf(filter, given)}`;
}

/** What the column of a filter equals. */
function operandOf({ kind, slot, column }: Filter, given: typeof wanted) {
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
function comparisons(layout: Layout, given: typeof wanted, filters: Filter[]) {
  const order = keysOf(layout);
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
function boundAt(side: 'from' | 'to', layout: Layout, given: typeof wanted) {
  const { by, ends, hasPlace, isDescending } = layout;
  const end = ends.find(isOf(side));
  const ofRange = end ? endOf(end, given) : [];
  const start = isDescending ? 'to' : 'from';
  if (!hasPlace || side !== start) return ofRange;
  const ofOrder = by.map((column) => placed(given('place'), column));
  const place = [...ofOrder, given('place_id')];
  return end ? inner(ofRange, place, side) : place;
}

const least = `${int64.min}`;
const greatest = `${int64.max}`;

/** An ascending list has ids above it, a descending one those up to it. */
export function startOf(
  place: { id: Int64 } | undefined,
  { isDescending }: Layout,
) {
  if (!place) return isDescending ? greatest : least;
  if (!isDescending) return `${place.id}`;
  return `${int64From(BigInt(place.id) - 1n) ?? least}`;
}

/** By which a list is sorted. */
function keysOf({ by }: Layout) {
  const keys = by.map(({ key }) => key);
  return [...keys, 'id'];
}

/** A value as the key of its column. */
function placed(value: string, { isFolded, path }: Column) {
  const text = isFolded ? `${value} collate "C"` : value;
  return path ? `array[${text}]` : text;
}

function row(values: string[]) {
  return `(${values.join(', ')})`;
}

/** The value and the id of an end. */
function endOf({ column, slot, id }: Filter, given: typeof wanted) {
  const value = given(slot);
  const folded = column.isFolded ? `lower(${value})` : value;
  return [placed(folded, column), `'${id}'::bigint`];
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
