import type { EntityMetadata, EntityProperty } from '@mikro-orm/core';
import { escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../../database/database.ts';
import { tenantIn } from '../../database/tenant-keys.ts';
import { assertShort, pathOf } from '../../database/through.ts';
import { reportFault } from '../../errors.ts';
import { int64FromDigits } from '../../validation/int64.ts';
import { kinds, wholeTime } from '../../validation/kinds.ts';
import {
  type Codec,
  type Kind,
  mostGiven,
  ofKind,
} from '../../validation/rules.ts';

/** SQL for the text of a column. */
export function textIn({ toText }: Codec, column: string) {
  return toText?.(column) ?? `${column}::text`;
}

const supported =
  "p.text(), p.enum(), p.integer(), p.smallint(), p.bigint('bigint'), p.double(), p.decimal(), p.boolean(), p.datetime(), p.date(), p.uuid(), p.json(), p.array(), " +
  'and p.manyToOne(...).mapToPk() of a key of these; nothing that MikroORM computes or fills itself, except p.integer().version()';

/** A column of a table, from MikroORM's metadata. */
export type Column = Readonly<ReturnType<typeof columnOf>>;

/**
 * A table with a primary key `id`. Its entity is the only source of names and
 * types.
 */
export class Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** Those of members of other rows, of which few are read. */
  readonly through: readonly Column[];
  /** Those that triggers copy from other rows, by which callers see the row. */
  readonly copied: readonly Column[];
  /**
   * Columns with values that the database generates or spells, the id first;
   * then those by which callers see the row.
   */
  readonly generated: readonly Column[];
  /** Columns that an insert sets. */
  readonly inserted: readonly Column[];
  /** Reads the rows with these ids. */
  readonly find: Statement;
  /** The same of one id, which costs a third less than an array. */
  readonly findOne: Statement;
  /** The column that each change increments. */
  readonly version: Column | undefined;
  /** Builds an item from the texts at one position of every column. */
  readonly decodeColumns: (
    columns: readonly unknown[][],
    place: number,
  ) => unknown;
  /** Builds an item from a row of texts. */
  readonly decodeRow: (row: readonly unknown[]) => unknown;
  /**
   * Builds an item from the inserted input and the row of texts that the
   * database generated.
   */
  readonly mergeGenerated: (
    input: object,
    generated: readonly unknown[],
  ) => unknown;

  /** The keys of each index: members, or `lower(name)` (`Column.key`). */
  readonly #indexes: string[][];
  /** The members of each unique one. */
  readonly #uniques: string[][];
  /** The member that has the tenant of a row. */
  readonly #tenant: string | undefined;

  /** @param owners members that rows are chosen by */
  constructor(
    { tableName, versionProperty, indexes, uniques, ...entity }: EntityMetadata,
    computed: Computed = {},
    owners: readonly string[] = [],
  ) {
    this.#tenant = tenantIn(entity)?.name;
    const { props } = entity;
    const all = props.map((one) => columnOf(one, tableName));
    const isRead = ({ member, path }: Column) =>
      !path || owners.includes(member);
    const columns = all.filter(isRead);
    const keys = indexes.map((index) => indexKeysOf(index, all));
    this.#uniques = uniques.map(membersIn).filter(({ length }) => length > 0);
    this.#indexes = [['id'], ...keys, ...this.#uniques];
    this.name = tableName;
    this.columns = columns;
    this.copied = columns.filter(({ path }) => path);
    this.through = all.filter(({ path }) => path);
    this.version = columns.find(({ member }) => member === versionProperty);
    const texts = columns.map(({ text }) => text).join(', ');
    const rows = `select ${texts} from ${quoted(tableName)}`;
    this.find = {
      name: `find_${tableName}`,
      text: `${rows} where id = any($1::bigint[])`,
    };
    this.findOne = {
      name: `find_one_${tableName}`,
      text: `${rows} where id = $1`,
    };
    // PostgreSQL writes a decimal with all digits of its scale, and JSON with
    // its own order of members.
    const isGenerated = ({ isAssigned, isSpelled, fallback }: Column) =>
      isAssigned || isSpelled || fallback !== undefined;
    const shown = columns.filter(
      (column) => owners.includes(column.member) && !isGenerated(column),
    );
    this.generated = [...columns.filter(isGenerated), ...shown];
    this.inserted = columns.filter(
      ({ isAssigned, path }) => !isAssigned && !path,
    );
    const make = itemCompiler(columns, computed);
    this.decodeColumns = make(
      'columns, place',
      (_, at) => `columns[${at}][place]`,
    );
    this.decodeRow = make('row', (_, at) => `row[${at}]`);
    this.mergeGenerated = make('input, row', (column) =>
      this.generated.includes(column)
        ? `row[${this.generated.indexOf(column)}]`
        : undefined,
    );
    if (this.generated[0]?.member !== 'id')
      reportFault(`The first member of ${tableName} must be its generated id.`);
    for (const property of props) this.#checkRelation(property);
  }

  #checkRelation({ kind, name, deleteRule, nullable }: EntityProperty) {
    const hasIndex = this.#indexes.some(([first]) => first === name);
    // PostgreSQL reads this table for each row that leaves the other one.
    if (kind === 'm:1' && !hasIndex)
      reportFault(
        `${this.name}.${name} needs an index that begins with it: ['${name}', 'id'].`,
      );
    if (deleteRule === 'set null' && !nullable)
      reportFault(
        `${this.name}.${name} must be nullable for its deleteRule 'set null'.`,
      );
  }

  /**
   * The columns of lists in the order of their indexes, which end with the
   * order of the lists.
   *
   * @param combinations those that filter a list
   * @param by sorts the lists before the id
   * @param few members whose values have few rows each
   * @throws Error with the indexes that the entity lacks
   */
  inOrderOfIndexes(
    combinations: readonly Column[][],
    by: readonly Column[],
    few: readonly string[] = [],
  ): IndexOrder[] {
    const order = by.map(({ indexed }) => indexed);
    const missing = new Set<string>();
    const ordered = combinations.map((filters) => {
      const members = filters.map(({ member }) => member);
      const isGiven = (index: string[]) =>
        index.every((member) => members.includes(member));
      // It finds at most one row, so neither the others nor the order matter.
      const unique = this.#uniques.find(isGiven);
      // A filter by the member of the order leaves one value of it.
      const others = members.filter((member) => !order.includes(member));
      // A relation to a row of a tenant leaves one tenant.
      const isOfOne = filters.some(({ isOfTenant }) => isOfTenant);
      const needed = others.filter((one) => !isOfOne || one !== this.#tenant);
      const key =
        unique ?? this.#keyOf(others, order) ?? this.#keyOf(needed, order);
      const isShort =
        !key &&
        this.#indexes.some((index) => {
          const at = index.findIndex((member) => few.includes(member));
          return at >= 0 && isGiven(index.slice(0, at + 1));
        });
      if (!key && !isShort) missing.add(this.#lineFor(needed, by));
      const beside = others.filter((member) => !key?.includes(member));
      const columns = [...new Set([...beside, ...(key ?? []), ...members])];
      return {
        columns: columns.map((member) => this.column(member)),
        apart: unique ? columns.length : beside.length,
        isShort,
      };
    });
    const sorted = by.map(({ member }) => ` sorted by ${member}`).join('');
    const message = `Each combination of the filters of ${this.name}${sorted} needs an index; the entity lacks`;
    for (const { member, isNullable, path } of by)
      if (isNullable && !path)
        reportFault(
          `${this.name} has an order by ${member}, which may be null.`,
        );
    if (missing.size > 0) reportFault(`${message} ${[...missing].join(', ')}.`);
    return ordered;
  }

  /** The members of an index on them, in any order, and then on the order. */
  #keyOf(members: string[], order: string[]) {
    const index = this.#indexes.find((one) =>
      isKeyOf(one, members, [...order, 'id']),
    );
    return index?.slice(0, members.length);
  }

  /** The line to write in the entity. */
  #lineFor(filters: string[], by: readonly Column[]) {
    const members = [...filters, ...by.map(({ member }) => member), 'id'];
    const named = members.map((member) => `'${member}'`).join(', ');
    if (by.every(({ key, name }) => key === name))
      return `{ properties: [${named}] }`;
    const index = [this.name, ...members].join('_');
    const names = filters.map((member) => this.column(member).name);
    const keys = [...names, ...by.map(({ key }) => key), '"id"'];
    return `{ name: '${index}', expression: 'create index "${index}" on ${quoted(this.name)} (${keys.join(', ')})' }`;
  }

  column(member: string) {
    const all = [...this.columns, ...this.through];
    const found = all.find((column) => column.member === member);
    if (!found) throw new Error(`${this.name} has no ${member}.`);
    return found;
  }
}

const ownCodecs = Object.values<Kind | undefined>(kinds).map(
  (kind) => kind?.codec,
);

/** A property, with what `columnsOf` has added to it. */
interface Property extends EntityProperty {
  [ofKind]?: () => Kind;
  [mostGiven]?: number;
}

/** @returns undefined for a type that is not supported */
function kindOf(property: Property, type: string): Kind | undefined {
  const { items, targetMeta, [ofKind]: carried } = property;
  if (!items && carried) return carried();
  // Words are safe to join: other texts may have a comma.
  const isOfWords = items?.every((item) => /^\w+$/.test(`${item}`));
  if (type === 'text' && isOfWords) return kinds.enum;
  const { runtimeType } = targetMeta?.getPrimaryProps()[0] ?? property;
  const types = `${type.replace(/^numeric\(.+/, 'numeric')} ${runtimeType}`;
  return Object.values<Kind>(kinds).find((one) => one.type === types);
}

function columnOf(property: Property, table: string) {
  const {
    name,
    targetMeta,
    fieldNames,
    columnTypes,
    items,
    nullable,
    defaultRaw,
    autoincrement,
    [mostGiven]: longest,
  } = property;
  const declared = columnTypes?.[0] ?? property.type;
  const type = declared
    .replace(/serial$/, 'int')
    .replace('smallint', 'int')
    .replace(/^timestamptz\([3-6]\)$/, 'timestamptz');
  const kind = kindOf(property, type);
  if (!kind || !isStored(property)) {
    reportFault(
      `${table}.${fieldNames?.[0] ?? name} has an unsupported type: ${declared}. Supported are ${supported}.`,
    );
  }
  const codec = {
    ...(kind ?? kinds.string).codec,
    ...(type === 'text' && items && enumCodec(items)),
  };
  const isOfEngine = ownCodecs.includes(kind?.codec);
  const sql = quoted(`${fieldNames?.[0]}`);
  // Its lists have one order on every database, whatever its collation: no
  // upgrade of the system's library changes it.
  const isFolded = kind === kinds.string;
  const place = `${table}.${fieldNames?.[0]}`;
  for (const sqlName of place.split('.')) assertShort(sqlName, place);
  const path = pathOf(property);
  const single = isFolded ? `lower(${sql}) collate "C"` : sql;
  const indexed = isFolded ? inLowerCase(name) : name;
  return {
    member: name,
    /** The quoted SQL name. */
    name: sql,
    /** Of a member of another row. */
    path,
    /** The characters of its longest value, where its schema bounds them. */
    longest,
    /** The database gives it to new rows. */
    isAssigned: autoincrement === true,
    /**
     * SQL expression by which lists are sorted. In an array null has a place,
     * the last one.
     */
    key: path ? `(array[${single}])` : single,
    /** The same in the indexes of an entity. */
    indexed: path ? `array[${indexed}]` : indexed,
    /** True for a text that is not one of an enumeration. */
    isFolded,
    type,
    /** The type of its parameters: there are no arrays of arrays. */
    parameter: type === 'text[]' ? 'text' : type,
    /** Converts a value to a parameter. */
    write: writerOf(codec.write),
    /** The same for the end of a range up to it. */
    writeLast: writerOf(codec.writeLast ?? codec.write),
    /** SQL expression for its value as text. */
    text: textIn(codec, sql),
    /** The same where the member is the column. */
    textOfMember: textIn(codec, quoted(name)),
    /**
     * Parses that text.
     *
     * @throws Error for a value that cannot be shown
     */
    decode: decoderOf(codec, place, nullable === true),
    /** SQL expression for its JSON in an answer, if SQL knows it. */
    json: codec.toJson?.(sql) ?? (isOfEngine ? sql : undefined),
    place,
    isSafeToJoin: !codec.isAnyText,
    isInteger: codec.fromText === int64FromDigits,
    /** PostgreSQL may spell its value in another way. */
    isSpelled: codec.isSpelled === true,
    isNullable: nullable === true,
    /** SQL for the JSON of its value in a cursor. */
    cursor: (codec.toCursor ?? asText)(single),
    fromCursor: codec.fromCursor ?? String,
    /** The table to whose rows it refers. */
    target: targetMeta?.tableName,
    /** True for a relation to a row of the same tenant. */
    isOfTenant: !nullable && targetMeta && tenantIn(targetMeta) !== undefined,
    /** SQL expression of its default. */
    fallback:
      defaultRaw && type === 'timestamptz' ? wholeTime(defaultRaw) : defaultRaw,
  };
}

/**
 * False for a property without a column, or with one that MikroORM fills
 * itself.
 */
function isStored({
  kind,
  mapToPk,
  runtimeType,
  persist,
  formula,
  version,
  generated,
  onCreate,
  onUpdate,
}: EntityProperty) {
  const hasOneColumn =
    kind === 'scalar' || (kind === 'm:1' && mapToPk === true);
  const isComputed =
    formula ||
    generated ||
    onCreate ||
    onUpdate ||
    (version && runtimeType !== 'number');
  return hasOneColumn && persist !== false && !isComputed;
}

/** The filters of a list in the order of its index. */
export interface IndexOrder {
  readonly columns: Column[];
  /**
   * How many of them are not compared with the order: those that the index
   * lacks, or all of a unique key.
   */
  readonly apart: number;
  /** True where they leave few rows. */
  readonly isShort: boolean;
}

/** The keys of an index on expressions that is not partial. */
const ofIndex = /^create index [^(]+\((.+)\)$/i;
const inLowerCase = (member: string) => `lower(${member})`;

interface Index {
  readonly properties?: unknown;
  readonly expression?: unknown;
}

/** The keys of an index, as the columns' `indexed`. */
function indexKeysOf(index: Index, columns: readonly Column[]) {
  if (!index.expression) return membersIn(index);
  const [, keys = ''] = ofIndex.exec(`${index.expression}`) ?? [];
  return keys.split(',').map((key) => keyNamed(key.trim(), columns));
}

function membersIn({ properties = [] }: Index) {
  return [properties].flat() as string[];
}

/** @param text with or without quotes */
function keyNamed(text: string, columns: readonly Column[]) {
  const key = unquoted(text);
  const sorted = columns.find((column) => key === unquoted(column.key));
  const named = columns.find(({ name }) => key === unquoted(name));
  return sorted?.indexed ?? `${named?.member}`;
}

const unquoted = (text: string) => text.replaceAll('"', '');

/** True for an index on these members, in any order, and then on the order. */
function isKeyOf(index: string[], members: string[], order: string[]) {
  const others = index.slice(0, members.length);
  const next = index.slice(members.length, members.length + order.length);
  return (
    `${next}` === `${order}` &&
    members.every((member) => others.includes(member))
  );
}

function writerOf(write: (value: never) => unknown = parameterOf) {
  return (value: unknown) => (value == null ? null : write(value as never));
}

const asText = (key: string) => `(${key})::text`;

/** An earlier release, or somebody else, may have stored another value. */
export function enumCodec(values: readonly unknown[]): Codec {
  return { fromText: (value) => values.find((one) => one === value) };
}

function decoderOf(codec: Codec, place: string, isNullable: boolean) {
  const { fromText = String, isAnyText } = codec;
  if (!codec.fromText && !isNullable) return undefined;
  return (text: string | null) => {
    const isNull = text === null || (!isAnyText && text === '');
    if (isNull && isNullable) return null;
    const value = isNull ? undefined : fromText(text);
    if (value !== undefined) return value;
    throw new Error(`${place} has a value that no client could have given`);
  };
}

const smallIntegers = /^-?\d{1,15}(?:,-?\d{1,15})*$/;

/**
 * Splits a column that a list aggregated (`lists/statement.ts`) into its texts;
 * small integers are numbers, which JSON makes of them at once.
 *
 * @param ids of the rows, if they are known
 * @throws Error when a value has a comma, which would move the next ones
 */
export function textsOf(
  { isSafeToJoin, isInteger, place }: Column,
  aggregate: string,
  ids?: readonly unknown[],
): unknown[] {
  if (!isSafeToJoin) return JSON.parse(aggregate);
  if (isInteger && smallIntegers.test(aggregate))
    return JSON.parse(`[${aggregate}]`);
  const texts = aggregate.split(',');
  if (ids && texts.length !== ids.length)
    throw new Error(
      `${place} has a value with a comma, in one of the rows ${ids.join(', ')}.`,
    );
  return texts;
}

/**
 * Compiles functions that build items. An object literal with all members costs
 * a third of adding them one by one (`bench/README.md`). A computed member is a
 * getter of the item.
 *
 * @returns a function of the parameters and `textOf`, the JavaScript expression
 *   for a column's text; undefined when `input` has the value itself
 */
function itemCompiler(columns: readonly Column[], computed: Computed) {
  return <Make>(
    parameters: string,
    textOf: (column: Column, at: number) => string | undefined,
  ): Make => {
    const [id] = columns;
    const idText = id && textOf(id, 0);
    const members = columns.map((column, at) => {
      const member = JSON.stringify(column.member);
      const text = textOf(column, at);
      if (text === undefined) return `${member}: input[${member}] ?? null`;
      return `${member}: ${column.decode ? `decode[${at}](${text})` : text}`;
    });
    const getters = Object.keys(computed)
      .map((name) => JSON.stringify(name))
      .map((name) => `get ${name}() { return computed[${name}](this); }`);
    const make = new Function(
      'decode',
      'computed',
      'unreadable',
      `return (${parameters}) => {
        try { return { ${[...members, ...getters].join(', ')} }; }
        catch (error) { throw unreadable(error, ${idText}); }
      };`,
    );
    return make(
      columns.map(({ decode }) => decode),
      computed,
      unreadable,
    );
  };
}

/** Names the row, because others than the service may have stored it. */
function unreadable(cause: Error, id: unknown) {
  return new Error(`The row ${id} cannot be read: ${cause.message}.`, {
    cause,
  });
}

/** Members that follow from others, by their names. */
export type Computed = Readonly<Record<string, (item: never) => unknown>>;

/** Converts a value to a statement parameter. */
export function parameterOf(value: unknown) {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return `${value}`;
  return value ?? null;
}
