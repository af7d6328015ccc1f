import { badInput } from '../../errors.ts';
import { type Int64, int64 } from '../../validation/int64.ts';
import { type Lists, rangeEnds } from '../../validation/list-query.ts';
import { maxSortedLength } from '../../validation/page.ts';
import type { Column, Table } from '../rows/table.ts';

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

export function isOf(kind: Filter['kind']) {
  return (filter: Filter) => filter.kind === kind;
}

export function filtersBy(column: Column, at: number): Filter[] {
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

export function endsOf(table: Table, { ranges = [], prefixes = [] }: Lists) {
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
      convert: id === int64.max ? column.writeLast : column.write,
    }),
  );
}

/** Appended to a prefix, it is above every text with this prefix. */
const greatest = '\u{10ffff}'.repeat(maxSortedLength);

function prefixOf(column: Column): Filter[] {
  const name = `${column.member}_prefix`;
  const { write: convert } = column;
  const lastWith = (prefix: unknown) => `${prefix}${greatest}`;
  return [
    { name, column, kind: 'from', slot: 'from', id: int64.min, convert },
    {
      name,
      column,
      kind: 'to',
      slot: 'to',
      id: int64.max,
      convert: lastWith,
    },
  ];
}

/** Ends a range before the items without a value. */
export function belowNull(column: Column): Filter {
  const convert = () => null;
  const id = int64.min;
  return { name: '', column, kind: 'to', slot: 'to', id, convert };
}

export const isEnd = ({ id }: Filter) => id !== undefined;

export function assertOneEach(filters: Filter[]) {
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

export function excluding(one: string, other: string) {
  return badInput(`${one} and ${other} exclude each other.`);
}

/** Distinct values as a JSON array of their texts. */
function jsonOf({ write }: Column) {
  return (values: unknown) => {
    const texts = new Set((values as unknown[]).map(write));
    return JSON.stringify([...texts]);
  };
}
