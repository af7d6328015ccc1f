import type { Database, Statement } from '../database/database.ts';
import { type Int64, int64, int64FromDigits } from '../validation/int64.ts';
import { maxExactTotal, type Page, type Total } from '../validation/page.ts';
import { cursorOf } from './cursor.ts';
import { parametersOf } from './list-statements.ts';
import type { Listing, Listings } from './listing.ts';
import { shared } from './shared-items.ts';
import type { Statements } from './statements.ts';
import { type Table, textsOf } from './table.ts';

type ListRow = Array<string | null>;

/** Reads the pages and totals of several lists; equal ones are read once. */
export class ListReader<Item extends { readonly id: Int64 }> {
  #isSharded: boolean | undefined;

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly listings: Listings,
    private readonly statements: Statements,
  ) {}

  /** Equal lists share one page. */
  async pages(listings: Listing[]) {
    const horizon = await this.#horizon();
    const pages = new Map<string, Page<Item>>();
    const families = Map.groupBy(
      distinct(listings),
      ({ shape }) => shape.family,
    );
    for (const family of families.values()) {
      const lists = family.map((one) => upTo(horizon, one));
      const rows = await this.#select(lists, horizon !== undefined);
      for (const [at, one] of family.entries())
        pages.set(one.key, this.#toPage(rows[at] as ListRow, one, horizon));
    }
    return listings.map(({ key }) => pages.get(key) as Page<Item>);
  }

  async totals(listings: Listing[]) {
    const totals = new Map<string, Total>();
    for (const one of distinct(listings))
      totals.set(one.key, await this.#total(one));
    return listings.map(({ key }) => totals.get(key) as Total);
  }

  async lastId() {
    return (await this.#horizon()) ?? this.#idBy(this.statements.last);
  }

  async #idBy(statement: Statement) {
    const [[id] = []] = await this.database.rows<ListRow>(statement, []);
    return id == null ? int64.min : int64FromDigits(id);
  }

  /**
   * The last id drawn, beyond which a list ends. Rows of a sharded table become
   * visible shard by shard, so a list might lack a row and contain a later one.
   *
   * @returns undefined for a table that is not sharded
   */
  async #horizon() {
    this.#isSharded ??= await this.database.isSharded(this.table.name);
    return this.#isSharded ? this.#idBy(this.statements.horizon) : undefined;
  }

  /**
   * Citus rejects several lists of a sharded table in one statement.
   *
   * @returns one row per list, in order
   */
  async #select(listings: Listing[], isSharded: boolean) {
    if (listings.length > 1 && !isSharded) return this.#together(listings);
    const rows: ListRow[] = [];
    // Sequential, because a batch may use only one connection.
    for (const one of listings) {
      const statement = isSharded ? one.shape.flat : one.shape.page;
      const values = parametersOf(statement, one);
      rows.push(...(await this.database.read<ListRow>(statement, values)));
    }
    return rows;
  }

  #together(listings: Listing[]) {
    const [{ shape }] = listings as [Listing];
    const statement = this.listings.together(shape);
    const lists = listings.map((one) => parametersOf(statement, one));
    const columns = statement.slots.map((_, at) =>
      lists.map((values) => values[at]),
    );
    return this.database.read(statement, columns);
  }

  /** @param horizon the id after which a page in their order ends */
  #toPage(
    row: ListRow,
    { shape, limit, isBackward }: Listing,
    horizon: Int64 | undefined,
  ) {
    if (row[0] === null) return { items: [], hasNext: false };
    const { columns } = this.table;
    const { read, found } = this.#itemsIn(row, limit);
    const endsAtHorizon = horizon !== undefined && shape.by.length === 0;
    const items = endsAtHorizon ? read.filter(({ id }) => id <= horizon) : read;
    const isWhole = items.length === read.length;
    const hasNext = isWhole && found > limit;
    if (isBackward) items.reverse();
    const order = row[columns.length];
    if (!order) return { items: shared(items), hasNext };
    const values: unknown[] = JSON.parse(order).slice(0, items.length);
    if (isBackward) values.reverse();
    const cursors = items.map(({ id }, at) =>
      cursorOf(shape.sort, `${values[at]}`, id),
    );
    return { items: shared(items), hasNext, cursors };
  }

  /** @returns at most `limit` items, and how many the row has */
  #itemsIn(row: ListRow, limit: number) {
    const { columns, decodeColumns } = this.table;
    const texts = columns.map((column, at) => textsOf(column, `${row[at]}`));
    const found = texts[0]?.length ?? 0;
    const read: Item[] = [];
    for (let place = 0; place < Math.min(found, limit); place += 1)
      read.push(decodeColumns(texts, place) as Item);
    return { read, found };
  }

  async #total(listing: Listing) {
    const { count, estimate } = listing.shape;
    const values = parametersOf(count, listing);
    const [[counted] = []] = await this.database.read<[string]>(count, values);
    const found = Number(counted);
    if (found <= maxExactTotal) return { count: found, isExact: true };
    const [[plan = ''] = []] = await this.database.read<[string]>(
      estimate,
      values,
    );
    const expected = JSON.parse(plan)[0].Plan['Plan Rows'];
    // Without statistics, the estimate may be lower than what was counted.
    return { count: Math.max(found, expected), isExact: false };
  }
}

function distinct(listings: Listing[]) {
  return [...new Map(listings.map((one) => [one.key, one])).values()];
}

/** A descending list by ids begins at the horizon at most. */
function upTo(horizon: Int64 | undefined, listing: Listing) {
  const { shape, values } = listing;
  const isDescendingById = shape.by.length === 0 && shape.isDescending;
  if (horizon === undefined || !isDescendingById) return listing;
  if (BigInt(`${values.place_id}`) <= BigInt(horizon)) return listing;
  return { ...listing, values: { ...values, place_id: `${horizon}` } };
}
