import type { EntityMetadata, EntityProperty } from '@mikro-orm/core';
import { int64FromDigits } from '../input/int64.ts';
import { quoted } from './sql.ts';

/** How the values of a column are transferred as PostgreSQL's text, and parsed. */
interface Codec {
  /** SQL that converts a value to text. */
  toText(column: string): string;
  /** Parses the text; when absent, the text is the value. */
  fromText?: (text: string) => unknown;
  /** True when no value's text is empty or holds a comma. */
  isWord: boolean;
}

const digits = (column: string) => `${column}::text`;
const asItIs = (column: string) => column;
const number: Codec = { toText: digits, fromText: Number, isWord: true };
const text: Codec = { toText: asItIs, isWord: false };
const word: Codec = { toText: asItIs, isWord: true };

/** By PostgreSQL's type and MikroORM's. A cast to any other, to `varchar(10)` for instance, could change a value. */
const codecs: Record<string, Codec> = {
  'bigint bigint': { toText: digits, fromText: int64FromDigits, isWord: true },
  'int number': number,
  'smallint number': number,
  'double precision number': number,
  'boolean boolean': { toText: digits, fromText: (value) => value === 'true', isWord: true },
  'timestamptz Date': {
    toText: (column) => `(extract(epoch from ${column}) * 1000)::bigint::text`,
    fromText: (value) => new Date(Number(value)),
    isWord: true,
  },
  'text string': text,
};

/** A column of a table, from MikroORM's metadata. */
export interface Column {
  /** The member of the entity. */
  readonly member: string;
  /** The name in SQL, in quotes. */
  readonly name: string;
  /** PostgreSQL's type. */
  readonly type: string;
  /** SQL of its value as text. */
  readonly text: string;
  /** Parses that text; undefined when the text is the value. */
  readonly decode: ((text: never) => unknown) | undefined;
  /** True when no value's text is empty or holds a comma. */
  readonly isWord: boolean;
  readonly isNullable: boolean;
  /** SQL of the value that an insert without one gets. */
  readonly fallback: string | undefined;
}

/** A table with a primary key `id`. Its entity is the only source of names and types. */
export class Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The columns whose values the database knows better, the id first; and the columns that an insert sets. */
  readonly generated: readonly Column[];
  readonly inserted: readonly Column[];
  /** Builds an item from the texts at one position of every column. */
  readonly itemAt: (columns: readonly unknown[][], place: number) => unknown;
  /** Builds an item from a row of texts. */
  readonly itemOf: (row: readonly unknown[]) => unknown;
  /** Builds an item from the inserted input and the row of texts that the database generated. */
  readonly itemFrom: (input: object, generated: readonly unknown[]) => unknown;

  /** @throws Error for an unknown type */
  constructor({ tableName, props }: EntityMetadata) {
    const columns = props.map(columnOf);
    this.name = tableName;
    this.columns = columns;
    this.generated = columns.filter(({ fallback }, at) => props[at]?.autoincrement || fallback !== undefined);
    this.inserted = columns.filter((_, at) => !props[at]?.autoincrement);
    this.itemAt = compile(columns, 'columns, place', (_, at) => `columns[${at}][place]`);
    this.itemOf = compile(columns, 'row', (_, at) => `row[${at}]`);
    this.itemFrom = compile(columns, 'input, row', (column) =>
      this.generated.includes(column) ? `row[${this.generated.indexOf(column)}]` : undefined,
    );
    if (this.generated[0]?.member !== 'id')
      throw new Error(`The first member of ${tableName} must be its generated id.`);
  }

  column(member: string): Column {
    const found = this.columns.find((column) => column.member === member);
    if (!found) throw new Error(`${this.name} has no ${member}.`);
    return found;
  }
}

/** @throws Error for what is not known here */
function columnOf(property: EntityProperty): Column {
  const { name, fieldNames, columnTypes, runtimeType, items, nullable, defaultRaw } = property;
  const type = `${columnTypes[0]}`.replace(/serial$/, 'int').replace(/^timestamptz\([3-6]\)$/, 'timestamptz');
  const isWord = type === 'text' && items?.every((item) => /^\w+$/.test(`${item}`));
  const codec = isWord ? word : codecs[`${type} ${runtimeType}`];
  if (!codec || !isPlain(property)) throw new Error(`${name} is of a type that is not known here: ${columnTypes[0]}.`);
  const sql = quoted(`${fieldNames[0]}`);
  return {
    member: name,
    name: sql,
    type,
    text: codec.toText(sql),
    decode: nullable ? decodeOrNull(codec) : codec.fromText,
    isWord: codec.isWord,
    isNullable: nullable === true,
    fallback: defaultRaw,
  };
}

/** False for what has no column, or one that MikroORM fills by itself. */
function isPlain({ kind, persist, formula, version, generated, onCreate, onUpdate }: EntityProperty): boolean {
  return kind === 'scalar' && persist !== false && !formula && !version && !generated && !onCreate && !onUpdate;
}

function decodeOrNull({ fromText = (value) => value, isWord }: Codec) {
  return (text: string | null) => (text === null || (isWord && text === '') ? null : fromText(text));
}

/** Splits what `aggregated` (statements.ts) selects into the texts of a column. */
export function textsOf({ isWord }: Column, aggregate: string): Array<string | null> {
  return isWord ? aggregate.split(',') : JSON.parse(aggregate);
}

/**
 * Compiles a function that builds items. An object literal with all members costs a third of adding them one by one
 * (`bench/README.md`).
 *
 * @param textOf the JavaScript expression for a column's text; undefined when `input` has the value itself
 */
function compile<Make>(
  columns: readonly Column[],
  parameters: string,
  textOf: (column: Column, at: number) => string | undefined,
): Make {
  const members = columns.map((column, at) => {
    const member = JSON.stringify(column.member);
    const text = textOf(column, at);
    if (text === undefined) return `${member}: input[${member}] ?? null`;
    return `${member}: ${column.decode ? `decode[${at}](${text})` : text}`;
  });
  const make = new Function('decode', `return (${parameters}) => ({ ${members.join(', ')} });`);
  return make(columns.map(({ decode }) => decode));
}
