import { createHash } from 'node:crypto';
import { escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import { maxExactTotal, pageLimit } from '../validation/page.ts';
import type { Condition, Listing, Shape } from './listing.ts';
import type { Column, Table } from './table.ts';

/** A statement with the parameters that it takes, in their order. */
export interface ListStatement extends Statement {
  readonly slots: readonly string[];
}

/** One item more than a page has, to detect a next one. */
export function parametersOf(
  { slots }: ListStatement,
  { limit, values }: Listing,
): unknown[] {
  return slots.map((slot) =>
    slot === 'limit' ? limit + 1 : (values[slot] ?? null),
  );
}

interface Slot {
  readonly name: string;
  readonly type: string;
}

/** The statements of lists and totals, each made when it is first used. */
export class ListStatements {
  readonly #table: Table;
  readonly #name: string;
  readonly #known = new Map<string, ListStatement>();

  constructor(table: Table) {
    this.#table = table;
    this.#name = quoted(table.name);
  }

  /** One list. */
  page(shape: Shape): ListStatement {
    return this.#once(`list ${shape.name}`, () => {
      const slots = [limitSlot, ...slotsOf(shape)];
      const page = this.#select(shape, numbered(slots));
      const text = `select ${this.#aggregated(shape)} from (${page}) as item`;
      return { slots, text };
    });
  }

  /**
   * Lists of several shapes in one order, one row for each. A shape is chosen
   * by the filters that have a value.
   */
  pages(shapes: Shape[]): ListStatement {
    const [first] = shapes as [Shape];
    return this.#once(`lists ${first.family}`, () => {
      const all = [limitSlot, ...shapes.flatMap(slotsOf)];
      const slots = [...new Map(all.map((slot) => [slot.name, slot])).values()];
      const given = (name: string) => `wanted."${name}"`;
      const filters = slots.filter(({ name }) => name.startsWith('filter_'));
      // Branches instead of `wanted.filter is null or ...`: each uses an index,
      // and PostgreSQL skips the branches whose one-time filter is false.
      // Skipped branches are not free: those of another order would cost
      // PostgreSQL a sixth.
      const branches = shapes.map((shape) => {
        const used = slotsOf(shape).map(({ name }) => name);
        const chosen = filters.map(
          ({ name }) =>
            `${given(name)} is ${used.includes(name) ? 'not null' : 'null'}`,
        );
        return `(${this.#select(shape, given, shapes.length > 1 ? chosen : [])})`;
      });
      const arrays = slots.map(({ type }, at) => `$${at + 1}::${type}[]`);
      const names = [...slots.map(({ name }) => `"${name}"`), '"#at"'];
      const text = `select page.* from unnest(${arrays.join(', ')}) with ordinality
          as wanted (${names.join(', ')})
        cross join lateral (
          select ${this.#aggregated(first)} from (${branches.join(' union all ')}) as item
        ) as page
        order by wanted."#at"`;
      return { slots, text };
    });
  }

  /** How many items a list has, up to one more than is counted exactly. */
  count(shape: Shape): ListStatement {
    return this.#once(`count ${shape.name}`, () => {
      const { slots, text } = this.#all(shape);
      const rows = `${text} limit ${maxExactTotal + 1}`;
      return { slots, text: `select count(*) from (${rows}) as item` };
    });
  }

  /** PostgreSQL's plan as JSON, with the estimated number of rows. */
  estimate(shape: Shape): ListStatement {
    return this.#once(`estimate ${shape.name}`, () => {
      const { slots, text } = this.#all(shape);
      return { slots, text: `explain (format json) ${text}` };
    });
  }

  #once(
    key: string,
    make: () => { slots: Slot[]; text: string },
  ): ListStatement {
    const known = this.#known.get(key);
    if (known) return known;
    const { slots, text } = make();
    const [kind] = key.split(' ');
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
    const statement = {
      name: `${kind}_${this.#table.name}_${hash}`,
      text,
      slots: slots.map(({ name }) => name),
    };
    this.#known.set(key, statement);
    return statement;
  }

  /** All rows of a list, in any order. */
  #all(shape: Shape) {
    const slots = slotsOf(shape);
    const given = numbered(slots);
    const conditions = [
      ...shape.conditions.map(({ column: { name, type }, kind, slot }) => {
        if (kind === 'null') return `${name} is null`;
        return kind === 'equal'
          ? `${name} = ${given(slot)}`
          : `${name} in (select "#value"::${type} from ${valuesIn(given(slot))} as values ("#value"))`;
      }),
      ...comparisons(shape, given),
    ];
    const where =
      conditions.length > 0 ? ` where ${conditions.join(' and ')}` : '';
    return { slots, text: `select 1 from ${this.#name}${where}` };
  }

  /**
   * A row comparison is a range of the index on (filter, id), and leaves no
   * other index with the same order. With `status = $3 and id > $1`, PostgreSQL
   * may scan the primary key instead and discard most rows. For each of several
   * values of a filter it reads a page, because PostgreSQL cannot merge them.
   */
  #select(shape: Shape, given: Given, chosen: string[] = []): string {
    const { conditions, by, isDescending } = shape;
    const among = conditions.filter(({ kind }) => kind === 'in');
    const valueIn = ({ column: { type }, kind, slot }: Condition) =>
      kind === 'in' ? `"#${slot}"."#value"::${type}` : given(slot);
    // A null is in no comparison of rows.
    const nulls = conditions.findLastIndex(({ kind }) => kind === 'null');
    const others = shape.isOne ? conditions.length : nulls + 1;
    const compared = conditions.slice(0, others).map((condition) => {
      const { name } = condition.column;
      return condition.kind === 'null'
        ? `${name} is null`
        : `${name} = ${valueIn(condition)}`;
    });
    const inRows = conditions.slice(others).map((condition) => ({
      name: condition.column.name,
      value: valueIn(condition),
    }));
    const within = comparisons(shape, given, inRows);
    const where = [...chosen, ...compared, ...within].join(' and ') || 'true';
    const direction = isDescending ? ' desc' : '';
    const order = [...(by ? [by.key] : []), 'id'].map(
      (key) => `${key}${direction}`,
    );
    const filters = conditions.map(
      ({ column: { name } }) => `${name}${direction}`,
    );
    const names = this.#table.columns.map(({ name }) => name).join(', ');
    const limit = `limit ${given(limitSlot.name)}`;
    // For a limit that it does not know PostgreSQL plans to read a tenth of the
    // rows, which it would rather sort.
    const page = `select * from (select ${names} from ${this.#name} where ${where}
      order by ${[...filters, ...order].join(', ')} limit ${pageLimit.max + 1}) as item ${limit}`;
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
  #aggregated({ by }: Shape): string {
    const columns = this.#table.columns.map((column) => {
      const { name, text, isSafeToJoin, isNullable } = column;
      if (!isSafeToJoin) return `json_agg(${text}) as ${name}`;
      const joined = isNullable ? `coalesce(${text}, '')` : text;
      return `string_agg(${joined}, ',') as ${name}`;
    });
    const order = by ? [`json_agg((${by.key})::text) as "#order"`] : [];
    return [...columns, ...order].join(', ');
  }
}

type Bound = Shape['bounds'][number];

/** SQL for the value of a slot. */
type Given = (slot: string) => string;

const limitSlot = { name: 'limit', type: 'int' };

const valuesIn = (json: string) => `json_array_elements_text(${json}::json)`;

function numbered(slots: Slot[]): Given {
  const names = slots.map(({ name }) => name);
  return (slot) => {
    const at = names.indexOf(slot);
    return `$${at + 1}::${slots[at]?.type}`;
  };
}

function slotsOf({ conditions, bounds, by }: Shape): Slot[] {
  const filters = conditions
    .filter(({ kind }) => kind !== 'null')
    .map(({ slot, kind, column }) => ({
      name: slot,
      type: kind === 'in' ? 'text' : column.type,
    }));
  const ends = bounds.flatMap((name) => [
    ...(by ? [{ name, type: by.type }] : []),
    { name: `${name}_id`, type: 'bigint' },
  ]);
  return [...filters, ...ends];
}

/**
 * Where a list begins and ends, as comparisons of rows.
 *
 * @param filters those before the order in the index
 */
function comparisons(
  { by, bounds, isDescending }: Shape,
  given: Given,
  filters: Array<{ name: string; value: string }> = [],
): string[] {
  const keys = [...(by ? [by.key] : []), 'id'];
  const names = filters.map(({ name }) => name);
  const values = filters.map(({ value }) => value);
  const endAt = (side: 'from' | 'to'): string[] | undefined => {
    const [end, place] = bounds
      .filter(
        (bound) =>
          bound === side ||
          (bound === 'place' && isDescending === (side === 'to')),
      )
      .map((bound) => endOf(bound, by, given));
    return end && place ? inner(end, place, side) : end;
  };
  const [from, to] = [endAt('from'), endAt('to')];
  const beyond = from ? [...names, ...keys] : names;
  const within = to ? [...names, ...keys] : names;
  const conditions: string[] = [];
  // PostgreSQL expects no rows of `(status, id) > ('sold', 7)` where no status
  // is greater.
  if (beyond.length > 0)
    conditions.push(
      `${row(beyond)} ${names.length > 0 ? '>=' : '>'} ${row([...values, ...(from ?? [])])}`,
    );
  if (from && names.length > 0) conditions.push(`${row(keys)} <> ${row(from)}`);
  if (within.length > 0)
    conditions.push(`${row(within)} <= ${row([...values, ...(to ?? [])])}`);
  return conditions;
}

const row = (values: string[]) => `(${values.join(', ')})`;

/** The value and the id of an end: only the id in an order by it. */
function endOf(bound: Bound, by: Column | undefined, given: Given): string[] {
  const id = given(`${bound}_id`);
  if (!by) return [id];
  const value = given(bound);
  if (!by.isFolded) return [value, id];
  return [`${bound === 'place' ? value : `lower(${value})`} collate "C"`, id];
}

/** The one of two ends that makes the list shorter. */
function inner(one: string[], other: string[], side: 'from' | 'to'): string[] {
  const [choice, operator] =
    side === 'from' ? ['greatest', '>'] : ['least', '<'];
  const isOne = `${row(one)} ${operator} ${row(other)}`;
  return [
    `${choice}(${one[0]}, ${other[0]})`,
    `case when ${isOne} then ${one[1]} else ${other[1]} end`,
  ];
}
