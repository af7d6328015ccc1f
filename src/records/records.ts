import type { EntityName } from '@mikro-orm/core';
import { Call } from '../call.ts';
import type { RunBatch } from '../database/batches.ts';
import type { Batches, Database } from '../database/database.ts';
import { isDataError, isUnsupported } from '../database/postgres-errors.ts';
import { whenCommitted } from '../database/transaction.ts';
import { type Int64, int64, int64FromDigits } from '../validation/int64.ts';
import {
  maxExactTotal,
  type Page,
  type PageQuery,
  type Total,
  totalCost,
} from '../validation/page.ts';
import type { Removal } from '../validation/schemas.ts';
import type { Validated } from '../validation/validator.ts';
import { type ChangeOf, Changes, type CheckRemoval } from './changes.ts';
import { cursorOf, notACursor, type Place, placeOf } from './cursor.ts';
import { type Check, Insertions } from './insertions.ts';
import { shared } from './shared-items.ts';
import { type Order, type Statements, statementsFor } from './statements.ts';
import {
  type Column,
  type Computed,
  parameterOf,
  Table,
  textsOf,
} from './table.ts';

/**
 * An input for new items: each member has the name and type of an item's
 * member.
 */
type InputOf<Item, New> = {
  readonly [Member in keyof New]: Member extends keyof Item
    ? Item[Member] | undefined
    : Member extends string
      ? never
      : New[Member];
};

type ListRow = Array<string | null>;
interface Query {
  readonly limit: number;
  readonly sort: string;
  readonly place: Place | undefined;
  readonly filters: unknown[];
}
export type FilterOf<Item> = {
  readonly [Member in keyof Item]?: Item[Member] | undefined;
};

/**
 * Reads and writes rows of an entity's table. Concurrent reads of a kind share
 * a batch (`batches.ts`), and so do creations. Services build on it; its rules
 * are paging and `check`.
 */
export class Records<
  Item extends { readonly id: Int64 },
  New extends InputOf<Item, New>,
> {
  readonly #database: Database;
  readonly #table: Table;
  readonly #filters: Column[];
  readonly #statements: Statements;
  readonly #lists: Batches<Query, Page<Item>>;
  readonly #finds: Batches<Int64, Item | null>;
  readonly #totals: Batches<unknown[], Total>;
  readonly #insertions: Insertions<Item, New>;
  readonly #changes: Changes<Item>;
  #onInserted: Array<() => void> = [];
  #isSharded: boolean | undefined;
  /** False once the engine has rejected a statement for several lists. */
  #supportsMany = true;

  /**
   * @param options.filters the members to filter lists by. Each combination of
   *   them needs an index, which ends with the id.
   * @param options.orders the members to sort lists by, beside the id, as
   *   `sortSchema` has them. Each needs the same indexes with it before the id.
   * @param options.computed members of items that follow from others
   * @param options.check a rule for creations and changes
   * @param options.checkRemoval a rule for removals
   * @throws Error naming the indexes that the entity lacks
   */
  constructor(
    database: Database,
    entity: EntityName,
    {
      filters = [],
      orders = [],
      computed,
      check,
      checkRemoval,
    }: {
      filters?: Array<keyof Item & string>;
      orders?: Array<keyof Item & string>;
      computed?: Computed;
      check?: Check<New, Item>;
      checkRemoval?: CheckRemoval<Item>;
    } = {},
  ) {
    this.#database = database;
    this.#table = new Table(database.orm.getMetadata(entity), computed);
    this.#filters = filters.map((member) => this.#table.column(member));
    this.#statements = statementsFor(
      this.#table,
      this.#filters,
      orders.map((member) => this.#table.column(member)),
    );
    const queue = <In, Out>(
      operation: string,
      run: RunBatch<In, Out>,
      maxInFlight = 4,
    ) =>
      database.batched(run, {
        maxBatch: 32,
        window: 8,
        maxInFlight,
        blockTime: 10,
        collection: this.#table.name,
        operation,
      });
    this.#lists = queue('list', (queries) => this.#readPages(queries));
    this.#finds = queue('find', (ids) => this.#readRows(ids));
    // Counts are slow, so they use one connection at most.
    this.#totals = queue('count', (queries) => this.#readTotals(queries), 1);
    this.#insertions = new Insertions(
      database,
      this.#table,
      this.#statements,
      check,
    );
    this.#changes = new Changes(
      database,
      this.#table,
      this.#statements.findOne,
      { check, checkRemoval },
    );
  }

  /**
   * Reads one page.
   *
   * @throws StoreError BAD_USER_INPUT for a cursor of another order;
   *   Unavailable
   */
  async list(
    query: Validated<PageQuery & FilterOf<Item>>,
    call = new Call(),
  ): Promise<Page<Item>> {
    const { limit, after, sort = 'id' } = query;
    const place = after === undefined ? undefined : placeOf(after, sort);
    const filters = this.#filtersIn(query);
    const page = await this.#lists
      .add({ limit, place, sort, filters }, call)
      .catch((error) => {
        throw place && isDataError(error) ? notACursor(sort) : error;
      });
    call.count(page.items.length);
    return page;
  }

  /**
   * Counts the items of a list, on all its pages.
   *
   * @throws Unavailable
   */
  async count(
    query: Partial<PageQuery> & FilterOf<Item>,
    call = new Call(),
  ): Promise<Total> {
    const total = await this.#totals.add(this.#filtersIn(query), call);
    call.count(totalCost);
    return total;
  }

  /** The values of the filters, null for those that are not in use. */
  #filtersIn(query: FilterOf<Item>): unknown[] {
    return this.#filters.map(({ member }) =>
      parameterOf(query[member as keyof Item]),
    );
  }

  /** Those of some statements for the filters in use, and their values. */
  #byFilters<Of extends { filters: Column[] }>(
    statements: Of[],
    filters: unknown[],
  ) {
    const used = filters.reduce(
      (bits: number, value, at) => (value === null ? bits : bits | (1 << at)),
      0,
    );
    const chosen = statements[used] as Of;
    const values = chosen.filters.map(
      (column) => filters[this.#filters.indexOf(column)],
    );
    return { ...chosen, values };
  }

  /**
   * @param id undefined when the client's id is invalid, so there is no such
   *   row
   * @returns null when there is none
   * @throws Unavailable
   */
  async find(id: Int64 | undefined, call = new Call()): Promise<Item | null> {
    // Lists cannot contain the least int64, so `find` treats it as absent, too.
    if (id === undefined || id === int64.min) return null;
    const found = await this.#finds.add(id, call);
    if (found) call.count(1);
    return found;
  }

  /**
   * The row is durable when the promise resolves.
   *
   * @throws Unavailable, StoreError BAD_USER_INPUT for a relation that
   *   does not exist; with a claim also IDEMPOTENCY_KEY_REUSED,
   *   IDEMPOTENCY_KEY_IN_USE, and SERVICE_UNAVAILABLE after an unknown outcome,
   *   because the claim makes a retry safe
   */
  async create(item: New, call?: Call): Promise<Item> {
    const inserted = await this.#insertions.insert(item, call);
    for (const listener of this.#onInserted) whenCommitted(listener);
    return inserted;
  }

  /**
   * Changes a row if it has the given version, the entity's
   * `p.integer().version()`, which each change increments.
   *
   * @returns null when there is none
   * @throws StoreError CONFLICT with the current `version`, BAD_USER_INPUT for
   *   an empty change or a relation that does not exist; Unavailable
   */
  change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call?: Call,
  ): Promise<Item | null> {
    return this.#changes.change(id, change, call);
  }

  /**
   * @returns null when there is none
   * @throws StoreError CONFLICT when it has another version or others refer to
   *   it; Unavailable
   */
  remove(
    id: Int64 | undefined,
    { version }: Removal,
    call?: Call,
  ): Promise<true | null> {
    return this.#changes.remove(id, version, call);
  }

  /**
   * The greatest id, or the least int64. Replicas may lag behind it. @throws
   * Unavailable
   */
  async lastId(): Promise<Int64> {
    const horizon = await this.#horizon();
    if (horizon !== undefined) return horizon;
    const [[last] = [null]] = await this.#database.rows<[string | null]>(
      this.#statements.last,
      [],
    );
    return last === null ? int64.min : int64FromDigits(last);
  }

  /** @param listener called after each insertion by this process */
  onInserted(listener: () => void): void {
    this.#onInserted.push(listener);
  }

  /**
   * Equal queries are read once and share one page; a single query needs no
   * key.
   */
  async #readPages(queries: Query[]): Promise<Array<Page<Item>>> {
    const keyOf = ({ filters, limit, place, sort }: Query) =>
      `${sort} ${limit} ${place?.id} ${place?.value} ${JSON.stringify(filters)}`;
    const keys = queries.length === 1 ? [''] : queries.map(keyOf);
    const distinct = new Map(queries.map((query, at) => [keys[at], query]));
    const horizon = await this.#horizon();
    const pages = new Map<string | undefined, Page<Item>>();
    const byOrder = Map.groupBy(distinct, ([, query]) => orderOf(query));
    for (const [order, entries] of byOrder) {
      const lists = entries.map(([, query]) => query);
      const rows = await this.#selectLists(order, lists, horizon);
      for (const [at, [key, query]] of entries.entries()) {
        const page = this.#toPage(rows[at] as ListRow, query);
        pages.set(key, order === 'id' ? upTo(horizon, page) : page);
      }
    }
    return keys.map((key) => pages.get(key) as Page<Item>);
  }

  /**
   * The last id drawn, beyond which a list ends. Rows of a sharded table become
   * visible shard by shard, so a list might lack a row and contain a later one.
   *
   * @returns undefined for a table that is not sharded
   */
  async #horizon(): Promise<Int64 | undefined> {
    this.#isSharded ??= await this.#database.isSharded(this.#table.name);
    if (!this.#isSharded) return undefined;
    const [[last] = [null]] = await this.#database.rows<[string | null]>(
      this.#statements.horizon,
      [],
    );
    return last === null ? int64.min : int64FromDigits(last);
  }

  /**
   * Reads one item more than requested, to detect a next page. Citus rejects
   * several lists of a hash-distributed table in one statement ("complex joins
   * are only supported when ..."); from then on each list is one statement.
   *
   * @returns one row per query, in order
   */
  async #selectLists(
    name: string,
    queries: Query[],
    horizon: Int64 | undefined,
  ): Promise<ListRow[]> {
    const pages = this.#statements.pages.get(name);
    if (!pages) {
      const message = `${this.#table.name} is not sorted by ${queries[0]?.sort}: name it in the orders of its Records.`;
      throw new Error(message);
    }
    const { order, lists, listMany } = pages;
    const places = queries.map(({ place }) => beginOf(place, order, horizon));
    if (queries.length > 1 && this.#supportsMany) {
      const columns = [
        queries.map(({ limit }) => limit + 1),
        ...this.#filters.map((_, at) =>
          queries.map(({ filters }) => filters[at]),
        ),
        ...(places[0] ?? []).map((_, at) => places.map((place) => place[at])),
      ];
      try {
        return await this.#database.read(listMany, columns);
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        this.#supportsMany = false;
      }
    }
    // Sequential, because a batch may use only one connection.
    const rows: ListRow[] = [];
    for (const [at, { filters, limit }] of queries.entries()) {
      const { values, ...list } = this.#byFilters(lists, filters);
      const parameters = [limit + 1, ...values, ...(places[at] ?? [])];
      rows.push(...(await this.#database.read<ListRow>(list, parameters)));
    }
    return rows;
  }

  async #readRows(ids: Int64[]): Promise<Array<Item | null>> {
    const wanted = [...new Set(ids)].map(String);
    const { find, findOne } = this.#statements;
    const rows = await (wanted.length === 1
      ? this.#database.read<ListRow>(findOne, wanted)
      : this.#database.read<ListRow>(find, [wanted]));
    const found = new Map(
      rows.map((row) => [row[0], this.#table.decodeRow(row) as Item]),
    );
    return ids.map((id) => found.get(`${id}`) ?? null);
  }

  /** One or two statements per combination of values. */
  async #readTotals(queries: unknown[][]): Promise<Total[]> {
    const totals = new Map<string, Total>();
    for (const filters of queries) {
      const key = JSON.stringify(filters);
      if (totals.has(key)) continue;
      const { count, estimate, values } = this.#byFilters(
        this.#statements.counts,
        filters,
      );
      const [[counted] = []] = await this.#database.read<[string]>(
        count,
        values,
      );
      let total = { count: Number(counted), isExact: true };
      if (total.count > maxExactTotal) {
        const [[plan = ''] = []] = await this.#database.read<[string]>(
          estimate,
          values,
        );
        // Without statistics, the estimate may be lower than what was counted.
        total = {
          count: Math.max(total.count, JSON.parse(plan)[0].Plan['Plan Rows']),
          isExact: false,
        };
      }
      totals.set(key, total);
    }
    return queries.map(
      (filters) => totals.get(JSON.stringify(filters)) as Total,
    );
  }

  #toPage(row: ListRow, { limit, sort }: Query): Page<Item> {
    if (row[0] === null) return { items: [], hasNext: false };
    const { columns, decodeColumns } = this.#table;
    const texts = columns.map((column, at) =>
      textsOf(column, row[at] as string),
    );
    const count = texts[0]?.length ?? 0;
    const items: Item[] = [];
    for (let place = 0; place < count && place < limit; place += 1)
      items.push(decodeColumns(texts, place) as Item);
    const page = { items: shared(items), hasNext: count > limit };
    const order = row[columns.length];
    if (!order) return page;
    const values: string[] = JSON.parse(order);
    const cursors = items.map(({ id }, at) =>
      cursorOf(sort, `${values[at]}`, id),
    );
    return { ...page, cursors };
  }
}

/** Names the statements of a list: see `Statements.pages`. */
function orderOf({ sort, place }: Query): string {
  return place?.value === undefined ? sort : `${sort}_after`;
}

/**
 * The parameters of the place where a list begins: see `range` in
 * statements.ts.
 */
function beginOf(
  place: Place | undefined,
  { by, isAscending, hasPlace }: Order,
  horizon: Int64 = int64.max,
): unknown[] {
  if (!hasPlace) return [];
  const id = isAscending
    ? (place?.id ?? int64.min)
    : greatestBelow(place?.id, horizon);
  return by ? [place?.value, `${id}`] : [`${id}`];
}

function greatestBelow(id: Int64 | undefined, horizon: Int64): Int64 {
  if (id === undefined || id > horizon) return horizon;
  return id > int64.min ? BigInt(id) - 1n : id;
}

/** Cuts a page after an id. */
function upTo<Item extends { readonly id: Int64 }>(
  horizon: Int64 | undefined,
  page: Page<Item>,
): Page<Item> {
  const end =
    horizon === undefined ? -1 : page.items.findIndex(({ id }) => id > horizon);
  return end < 0
    ? page
    : { items: shared(page.items.slice(0, end)), hasNext: false };
}
