import { literal, quoted } from '../../storage/records/quoting.ts';
import type { Catalogue, StoredColumn, StoredSequence, StoredTable } from './catalogue.ts';

/** SQL that makes the tables of a database in an empty one, for PostgreSQL 12 and later. */
export interface Definition {
  /** Before the rows. */
  tables: string[];
  /** After them: counters, constraints and indexes, which are made faster of rows that are there. */
  rest: string[];
}

export function definitionOf({ tables, sequences }: Catalogue): Definition {
  const constraints = tables.flatMap(({ name, constraints }) => constraints.map((one) => ({ table: name, ...one })));
  return {
    tables: [...sequences.map(createSequence), ...tables.map(createTable)],
    rest: [
      ...sequences.flatMap(ownership),
      // A foreign key needs the key of the other table.
      ...constraints.toSorted((a, b) => Number(a.isForeign) - Number(b.isForeign)).map(addConstraint),
      ...tables.flatMap(({ indexes }) => indexes),
      ...sequences.map(setValue),
    ],
  };
}

function createSequence({ name, type, start, step, min, max, cache, isCyclic }: StoredSequence): string {
  const bounds = `minvalue ${min} maxvalue ${max} start ${start} cache ${cache}${isCyclic ? ' cycle' : ''}`;
  return `create sequence ${quoted(name)} as ${type} increment ${step} ${bounds}`;
}

function createTable({ name, columns, settings }: StoredTable): string {
  const withSettings = settings ? ` with (${settings.join(', ')})` : '';
  return `create table ${quoted(name)} (${columns.map(columnSql).join(', ')})${withSettings}`;
}

function columnSql({ name, type, isRequired, fallback }: StoredColumn): string {
  const words = [quoted(name), type];
  if (fallback !== null) words.push('default', fallback);
  if (isRequired) words.push('not null');
  return words.join(' ');
}

function ownership({ name, owner }: StoredSequence): string[] {
  return owner ? [`alter sequence ${quoted(name)} owned by ${quoted(owner.table)}.${quoted(owner.column)}`] : [];
}

function addConstraint({ table, name, sql }: { table: string; name: string; sql: string }): string {
  return `alter table ${quoted(table)} add constraint ${quoted(name)} ${sql}`;
}

function setValue({ name, value, isCalled }: StoredSequence): string {
  return `select pg_catalog.setval(${literal(quoted(name))}, ${value}, ${isCalled})`;
}
