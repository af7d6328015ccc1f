import { escapeIdentifier as quoted } from 'pg';
import type { Static, TObject } from 'typebox';
import type { Call } from '../call.ts';
import type { Database } from '../database/database.ts';
import { badInput } from '../errors.ts';
import type { Int64 } from '../validation/int64.ts';
import { kinds } from '../validation/kinds.ts';
import { totalCost } from '../validation/page.ts';
import { maxPageLength } from '../validation/page-size.ts';
import { type Member, memberOf } from '../validation/schemas.ts';
import { type Ownership, seenRows } from './rows/ownership.ts';
import {
  type Column,
  enumCodec,
  parameterOf,
  Table,
  textIn,
} from './rows/table.ts';

const mostRows = 1000;

/** A collection: its rows, and whose they are. */
export interface Source<Item = unknown> {
  readonly database: Database;
  readonly table: Table;
  readonly owned: Ownership;
  find(id: Int64 | undefined, call: Call): Promise<Item | null>;
}

/** The columns of a row, none of them an array or an object; or its collection. */
type Row = TObject | Source;
type Decoded<Of extends Row> = Of extends TObject
  ? Static<Of>
  : Of extends Source<infer Item>
    ? Item
    : never;

/**
 * Reads by own SQL, within the call's deadline. Collections in it are the rows
 * that the call sees, with their members as columns; other values are
 * parameters.
 *
 * @example
 *   select(call, monthSchema)`
 *     select date_trunc('month', "at", 'UTC') as month, count(*) as visits
 *     from ${visits} as visit where "petId" = ${petId} group by 1 order by 1`
 *
 * @throws StoreError BAD_USER_INPUT for more than 1,000 rows, or more
 *   characters than a page may have; Unavailable; Error for a value that the
 *   schema excludes
 */
export function select<const Of extends Row>(call: Call, row: Of) {
  const { texts, decode } = isSource(row) ? ofSource(row) : ofSchema(row);
  return async (strings: TemplateStringsArray, ...given: unknown[]) => {
    const source = given.find(isSource);
    if (!source)
      throw new Error('A select needs the collection that it reads.');
    const { own, values } = parameterised(call, strings, given, row);
    const text = `select ${texts.join(', ')} from (${own}) as found limit ${mostRows + 1}`;
    const { database, table } = source;
    const name = `select_${table.name}`;
    const queue = { collection: table.name, operation: 'select' };
    const rows = await database.inTurn(call, queue, () =>
      database.read<Texts>({ name, text }, values),
    );
    call.count(rows.length + totalCost);
    assertFits(rows);
    const found = rows.map(decode) as Array<Decoded<Of>>;
    if (!isSource(row)) return found;
    return row.owned.shown(found as object[], call) as typeof found;
  };
}

type Texts = Array<string | null>;

/** @throws StoreError BAD_USER_INPUT */
function assertFits(rows: readonly Texts[]) {
  if (rows.length > mostRows) throw tooMuch(`${mostRows} rows`);
  let length = 0;
  for (const row of rows) {
    for (const text of row) length += text?.length ?? 0;
  }
  if (length > maxPageLength) throw tooMuch(`${maxPageLength} characters`);
}

const tooMuch = (most: string) =>
  badInput(`This has more than ${most}: ask for less.`);

const isSource = (value: unknown): value is Source =>
  (value as Partial<Source> | null)?.table instanceof Table;

/** The own SQL, with parameters by their numbers, and their values. */
function parameterised(
  call: Call,
  strings: TemplateStringsArray,
  given: readonly unknown[],
  row: Row,
) {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(parameterOf(value))}`;
  const parts = given.map((one) =>
    isSource(one) ? rowsFor(call, one, parameter, one === row) : parameter(one),
  );
  return { own: String.raw({ raw: strings }, ...parts), values };
}

/**
 * A member that the call does not see is null.
 *
 * @param isOfItems a further column has it, because items lose it when they are
 *   shown
 */
function rowsFor(
  call: Call,
  { table, owned }: Source,
  parameter: (value: string) => string,
  isOfItems: boolean,
) {
  const { name, columns } = table;
  const shown = ({ name, member }: Column) => {
    const views = owned.viewsShowing(member, call);
    if (!views) return name;
    const rows = seenRows(views, table, parameter) || 'false';
    return `case when ${rows} then ${name} end`;
  };
  const members = columns.map(
    (column) => `${shown(column)} as ${quoted(column.member)}`,
  );
  for (const { member, text } of isOfItems ? columns : [])
    if (owned.hidden.includes(member))
      members.push(`${text} as ${wholeOf(member)}`);
  const all = `select ${members.join(', ')} from ${quoted(name)}`;
  const views = owned.requireViews(call);
  if (!views) return `(${all})`;
  return `(${all} where ${seenRows(views, table, parameter)})`;
}

// How rows are read: SQL for the text of each column, and what they become.

const ofSource = ({ table, owned }: Source) => ({
  texts: table.columns.map(({ member, textOfMember }) =>
    owned.hidden.includes(member) ? wholeOf(member) : textOfMember,
  ),
  decode: table.decodeRow,
});

/** The column with the text of a member that some callers do not see. */
const wholeOf = (member: string) => quoted(`#${member}`);

function ofSchema({ properties }: TObject) {
  const members = Object.entries(properties).map(([name, schema]) => ({
    name,
    ...memberOf(schema),
  }));
  return {
    texts: members.map(({ name, kind }) => textIn(kind.codec, quoted(name))),
    decode(texts: Texts) {
      const values = members.map((member, at) => [
        member.name,
        decoded(member, texts[at] ?? null),
      ]);
      return Object.fromEntries(values);
    },
  };
}

function decoded(
  { name, kind, isNullable, values }: Member & { name: string },
  text: string | null,
) {
  const { fromText = String } =
    kind === kinds.enum ? enumCodec(values) : kind.codec;
  if (text === null && isNullable) return null;
  const value = text === null ? undefined : fromText(text);
  if (value !== undefined) return value;
  const what = text === null ? 'null' : 'a value';
  throw new Error(`${name} is ${what}, which its schema excludes.`);
}
