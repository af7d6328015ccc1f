import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Database, Statement } from '../../database/database.ts';
import { orError } from '../../errors.ts';
import { type Int64, int64, int64FromDigits } from '../../validation/int64.ts';
import {
  type Identified,
  maxExactTotal,
  type Page,
  type Total,
} from '../../validation/page.ts';
import { seenRows, type View } from '../rows/ownership.ts';
import { type Column, type Table, textsOf } from '../rows/table.ts';
import { cursorOf } from './cursor.ts';
import {
  type ListInterpreter,
  type Listing,
  type ListStatement,
  parametersOf,
  type Shape,
} from './query.ts';

type ListRow = Array<string | null>;

/** In characters: those of 100 plain items. */
const longPage = 10_000;

/** Reads the pages and totals of several lists; equal ones are read once. */
export class ListReader<Item extends Identified> {
  #isSharded: boolean | undefined;
  /** The usual characters of an item. */
  #itemLength = 0;

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly interpreter: ListInterpreter,
    private readonly horizon?: Statement,
  ) {}

  /**
   * How many short pages a page counts for, as far as items have their usual
   * length. Equal lists are read once.
   */
  weightOf({ key, limit }: Listing, known: Set<unknown>) {
    const length = limit * this.#itemLength;
    if (length < longPage || known.has(key)) return 1;
    known.add(key);
    return 1 + Math.floor(length / longPage);
  }

  /** Equal lists share one page. */
  async pages(listings: Listing[]) {
    const horizon = await this.#horizon();
    const pages = new Map<string, Page<Item> | Error>();
    for (const family of familiesOf(listings)) {
      const lists = family.map((one) => upTo(horizon, one));
      const rows = await this.#select(lists);
      for (const [at, one] of lists.entries()) {
        const row = rows[at] as ListRow;
        const page = orError(() => this.#pageOf(row, one));
        pages.set(one.key, page);
      }
    }
    return listings.map(({ key }) => pages.get(key) as Page<Item> | Error);
  }

  async totals(listings: Listing[]) {
    const totals = new Map<string, Total>();
    for (const one of distinct(listings)) {
      const total = await this.#totalOf(one);
      totals.set(one.key, total);
    }
    return listings.map(({ key }) => totals.get(key) as Total);
  }

  /** @param views rows that alone count then; none for all that are visible */
  async lastId(views: readonly View[] | undefined) {
    const horizon = await this.#horizon();
    if (!views && horizon !== undefined) return horizon;
    const end = horizon ?? int64.max;
    const { statement, values } = lastSeenIn(this.table, views ?? [], end);
    return this.#idBy(statement, values);
  }

  async #idBy(statement: Statement, values: unknown[] = []) {
    const [row] = await this.database.rows<ListRow>(statement, values);
    const id = row?.[0];
    if (id == null) return int64.min;
    return int64FromDigits(id);
  }

  /**
   * The last id drawn, beyond which a list ends. Rows of a sharded table become
   * visible shard by shard, so a list might lack a row and contain a later one.
   *
   * @returns undefined for a table that is not sharded
   */
  async #horizon() {
    const { table } = this;
    this.#isSharded ??= await this.database.isSharded(table.name);
    if (this.horizon) return this.#idBy(this.horizon);
    return this.#isSharded ? this.#idBy(lastDrawnIn(table)) : undefined;
  }

  /**
   * Citus rejects several lists of a sharded table in one statement.
   *
   * @returns one row per list, in order
   */
  async #select(family: Listing[]) {
    const isTogether = family.length > 1 && !this.#isSharded;
    if (isTogether) return this.#together(family);
    const rows: ListRow[] = [];
    // Sequential, because a batch may use only one connection.
    for (const one of family) {
      const { page, flat } = one.shape;
      const statement = this.#isSharded ? flat() : page;
      const read = await this.#read(statement, one);
      rows.push(...read);
    }
    return rows;
  }

  #read(statement: ListStatement, listing: Listing) {
    return this.#rows(statement, parametersOf(statement, listing));
  }

  #together(family: Listing[]) {
    const [{ shape }] = family as [Listing];
    const statement = this.interpreter.together(shape);
    const columns = statement.slots.map((slot) =>
      family.map(({ values }) => values[slot] ?? null),
    );
    return this.#rows(statement, columns);
  }

  /** A read node may lack rows up to the horizon. */
  #rows(statement: ListStatement, values: unknown[]): Promise<ListRow[]> {
    if (this.horizon) return this.database.rows(statement, values);
    return this.database.read(statement, values);
  }

  #pageOf(row: ListRow, listing: Listing) {
    if (row[0] === null) return { items: [], hasNext: false };
    const { shape, isBackward } = listing;
    const { items, hasNext } = this.#itemsIn(row, listing);
    const order = row[this.table.columns.length];
    const cursors = order ? cursorsOf(items, order, shape) : undefined;
    if (isBackward) {
      items.reverse();
      cursors?.reverse();
    }
    return {
      items: shared(items),
      hasNext,
      cursors,
    };
  }

  /** At most `limit` items, up to the end. */
  #itemsIn(row: ListRow, { limit, end }: Listing) {
    const { columns, decodeColumns } = this.table;
    const ids = textsOf(columns[0] as Column, `${row[0]}`);
    const texts = columns.map((column, at) =>
      at === 0 ? ids : textsOf(column, `${row[at]}`, ids),
    );
    const found = ids.length;
    let characters = 0;
    for (const text of row) characters += text?.length ?? 0;
    this.#itemLength += (characters / found - this.#itemLength) / 16;
    const length = Math.min(found, limit);
    const items: Item[] = [];
    for (let place = 0; place < length; place += 1) {
      const item = decodeColumns(texts, place) as Item;
      const isBeyond = end !== undefined && item.id > end;
      if (isBeyond) return { items, hasNext: false };
      items.push(item);
    }
    return { items, hasNext: found > limit };
  }

  async #totalOf(listing: Listing) {
    const { count, estimate } = listing.shape;
    const counted = await this.#readText(count(), listing);
    const found = Number(counted);
    if (found <= maxExactTotal) return { count: found, isExact: true };
    const explained = await this.#readText(estimate(), listing);
    const [{ Plan: plan }] = JSON.parse(explained);
    // Without statistics, the estimate may be lower than what was counted.
    const expected = Math.max(found, plan['Plan Rows']);
    return { count: expected, isExact: false };
  }

  async #readText(statement: ListStatement, listing: Listing) {
    const [row] = await this.#read(statement, listing);
    return `${row?.[0]}`;
  }
}

function lastSeenIn(table: Table, views: readonly View[], end: Int64) {
  const values: unknown[] = [];
  const place = (value: unknown) => `$${values.push(value)}`;
  const rows = seenRows(views, table, place) || 'true';
  const seen = views.length > 1 ? `(${rows})` : rows;
  const own = `where ${seen} and id <= ${place(end)}`;
  const text = `select max(id)::text from ${quoted(table.name)} ${own}`;
  const places = views.map(({ at }) => at).join('_');
  return {
    statement: { name: `last_own_${places}_${table.name}`, text },
    values,
  };
}

/**
 * An insert holds this lock from drawing its ids until they are visible on every
 * node. While this statement holds it, no id is drawn, so later statements see
 * all rows up to the last id.
 */
function lastDrawnIn({ name }: Table): Statement {
  const key = `hashtext(${literal(name)})`;
  const table = literal(quoted(name));
  const sequence = `pg_get_serial_sequence(${table}, 'id')::regclass`;
  const lock = `select pg_advisory_xact_lock_shared(${key})::text`;
  const last = `select pg_sequence_last_value(${sequence})::text`;
  return {
    name: `horizon_${name}`,
    text: `with lock as materialized (${lock}) ${last} from lock`,
  };
}

/** Those that one statement reads together. */
function familiesOf(listings: Listing[]) {
  const lists = distinct(listings);
  const families = Map.groupBy(lists, ({ shape }) => shape.family);
  return families.values();
}

function distinct(listings: Listing[]) {
  const byKey = new Map<string, Listing>();
  for (const one of listings) byKey.set(one.key, one);
  return byKey.values();
}

/** Bounds a list by ids: a descending one begins at the horizon at most. */
function upTo(horizon: Int64 | undefined, listing: Listing): Listing {
  const { shape, values } = listing;
  const isById = shape.by.length === 0;
  const isUnbounded = horizon === undefined || !isById;
  if (isUnbounded) return listing;
  if (!shape.isDescending) return { ...listing, end: horizon };
  const place = BigInt(`${values.place_id}`);
  if (place <= horizon) return listing;
  const bounded = { ...values, place_id: `${horizon}` };
  return { ...listing, values: bounded };
}

/** @param order the values that they are sorted by, and perhaps further ones */
function cursorsOf(
  items: readonly Identified[],
  order: string,
  { sort, by }: Shape,
) {
  const values: Array<string | null> = JSON.parse(order);
  return items.map(({ id }, at) => {
    const json = values[at];
    if (json === null) return cursorOf({ id, value: null }, sort);
    const value = by[0]?.fromCursor(`${json}`);
    return cursorOf({ id, value: `${value}` }, sort);
  });
}

const serialisations = Symbol('serialisations');

/**
 * Most results of items. A client may have many serialisers: each document of a
 * subscription is one, with up to 30 MB.
 */
const maxKept = 4;

/** Immutable items, with the results of serialisers, the newest first. */
interface SharedItems extends ReadonlyArray<unknown> {
  [serialisations]?:
    | Array<{ serialiser: unknown; result: unknown }>
    | undefined;
}

/** Marks items that several requests share. They must not change afterwards. */
export function shared<Item>(items: readonly Item[]) {
  (items as SharedItems)[serialisations] = undefined;
  return items;
}

/**
 * Serialises items. Shared items are serialised once per serialiser, however
 * many requests share them.
 *
 * @param serialiser identifies `serialise`, which must be deterministic
 */
export function serialiseOnce<Item, Result>(
  items: readonly Item[],
  serialiser: unknown,
  serialise: (items: readonly Item[]) => Result,
) {
  if (!(serialisations in items)) return serialise(items);
  const sharedItems = items as SharedItems;
  const kept = sharedItems[serialisations] ?? [];
  const found = kept.find((one) => one.serialiser === serialiser);
  if (found) return found.result as Result;
  const result = serialise(items);
  const all = [{ serialiser, result }, ...kept];
  sharedItems[serialisations] = all.slice(0, maxKept);
  return result;
}
