import type { EntityName } from '@mikro-orm/core';
import { Call } from '../call.ts';
import type { RunBatch } from '../database/batches.ts';
import type { Batches, Database, Statement } from '../database/database.ts';
import {
  isDataError,
  isUnsupported,
  noSuch,
} from '../database/postgres-errors.ts';
import { whenCommitted } from '../database/transaction.ts';
import { type Int64, int64, int64FromDigits } from '../validation/int64.ts';
import type { FilterOf, Lists } from '../validation/list-query.ts';
import {
  cursorAt,
  maxExactTotal,
  type Page,
  type PageQuery,
  type Total,
  totalCost,
} from '../validation/page.ts';
import type { Removal } from '../validation/schemas.ts';
import type { Validated } from '../validation/validator.ts';
import { type ChangeOf, Changes, type CheckRemoval } from './changes.ts';
import { cursorBeside, cursorOf, notACursor } from './cursor.ts';
import { type Check, Insertions } from './insertions.ts';
import { parametersOf } from './list-statements.ts';
import { type Listing, Listings } from './listing.ts';
import { type Owner, Ownership } from './ownership.ts';
import { shared } from './shared-items.ts';
import { type Statements, statementsFor } from './statements.ts';
import { type Computed, Table, textsOf } from './table.ts';

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
  readonly #owned: Ownership | undefined;
  readonly #statements: Statements;
  readonly #listings: Listings;
  readonly #lists: Batches<Listing, Page<Item>>;
  readonly #finds: Batches<Int64, Item | null>;
  readonly #totals: Batches<Listing, Total>;
  readonly #insertions: Insertions<Item, New>;
  readonly #changes: Changes<Item>;
  #onInserted: Array<() => void> = [];
  #isSharded: boolean | undefined;
  /** False once the engine has rejected a statement for several lists. */
  #supportsMany = true;

  /**
   * @param options the lists that clients may ask for, as in `listQuery`,
   *   members of items that follow from others (`computed`), the member with
   *   the owner of an item, a rule for creations and changes, and one for
   *   removals. Each combination of filters needs an index that ends with the
   *   id; for each order another one, with its member before the id; and all of
   *   these again with the owner.
   * @throws Error with the indexes that the entity lacks
   */
  constructor(
    database: Database,
    entity: EntityName,
    {
      computed,
      owner,
      check,
      checkRemoval,
      ...lists
    }: Lists<keyof Item & string> & {
      computed?: Computed;
      owner?: Owner<keyof Item & string>;
      check?: Check<New, Item>;
      checkRemoval?: CheckRemoval<Item>;
    } = {},
  ) {
    this.#database = database;
    this.#table = new Table(database.orm.getMetadata(entity), computed);
    this.#owned =
      owner && new Ownership(owner, database.model.modules?.get(entity));
    const hasRelations = this.#table.columns.some(({ target }) => target);
    this.#statements = statementsFor(this.#table);
    const all = this.#owned?.filter(lists) ?? lists;
    this.#listings = new Listings(this.#table, all, this.ownerMember);
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
    const checkNew: Check<New> = async (members, call) => {
      await this.#assertRelations(members, call);
      await check?.(members, call);
    };
    this.#insertions = new Insertions(
      database,
      this.#table,
      this.#statements,
      hasRelations ? checkNew : check,
    );
    this.#changes = new Changes(
      database,
      this.#table,
      this.#statements.findOne,
      { owned: this.#owned, check, checkRemoval },
    );
    if (this.#owned)
      database.owned.set(this.#table.name, (id, call) => this.#has(id, call));
  }

  /**
   * Reads one page.
   *
   * @throws StoreError BAD_USER_INPUT for a list that the options do not
   *   declare, or a cursor of another order; Unavailable
   */
  async list(
    query: Validated<PageQuery & FilterOf<Item>>,
    call = new Call(),
  ): Promise<Page<Item>> {
    const own = this.narrow(query, call);
    const listing = this.#listings.read(own);
    const page = await this.#readPage(listing, call);
    // A list costs one anyway, and each further value of a filter one more.
    call.count(page.items.length + listing.among);
    return listing.isBackward || listing.place
      ? this.#withOtherEnd(page, listing, own, call)
      : page;
  }

  /** @throws StoreError BAD_USER_INPUT as `list` does */
  assertListed(query: Partial<PageQuery> & FilterOf<Item>): void {
    this.#listings.read(query);
  }

  #readPage(listing: Listing, call: Call): Promise<Page<Item>> {
    return this.#lists.add(listing, call).catch((error) => {
      if (!listing.place || !isDataError(error)) throw error;
      const parameter = listing.isBackward ? 'before' : 'after';
      throw notACursor({ sort: listing.shape.sort, parameter });
    });
  }

  /**
   * Adds what the page itself does not tell: whether there are items on the side
   * of its cursor.
   */
  async #withOtherEnd(
    page: Page<Item>,
    listing: Listing,
    query: PageQuery & FilterOf<Item>,
    call: Call,
  ): Promise<Page<Item>> {
    const { isBackward, place, shape } = listing;
    const hasPrevious = page.hasNext;
    if (!place) return { ...page, hasNext: false, hasPrevious };
    const cursor = cursorBeside(place, shape);
    const edge = cursorAt(page, isBackward ? -1 : 0) ?? cursor;
    const beyond = isBackward
      ? { before: undefined, after: edge }
      : { after: undefined, before: edge };
    const others = { ...query, ...beyond, limit: 0, fromEnd: !isBackward };
    const hasMore = async () => {
      const { hasNext } = await this.#readPage(
        this.#listings.read(others),
        call,
      );
      return hasNext;
    };
    return isBackward
      ? { ...page, cursor, hasNext: await hasMore(), hasPrevious }
      : { ...page, cursor, hasPrevious: hasMore };
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
    const { limit: _, after: __, before: ___, ...filters } = query;
    const own = this.narrow(filters, call);
    const total = await this.#totals.add(this.#listings.read(own), call);
    call.count(totalCost);
    return total;
  }

  /** The member with the owner of an item, if any. */
  get ownerMember(): string | undefined {
    return this.#owned?.member;
  }

  /** Adds the owner to the filters, where rows belong to callers. */
  narrow<Query extends object>(query: Query, call: Call): Query {
    return this.#owned?.narrow(query, call) ?? query;
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
    if (!found || this.#owned?.sees(found, call) === false) return null;
    call.count(1);
    return found;
  }

  /** Whether a call sees an item, as the primary has it. */
  async #has(id: unknown, call: Call): Promise<boolean> {
    const owner = this.#owned?.ownerIn(call);
    // The database refuses what does not exist.
    if (owner === undefined) return true;
    return (await this.#changes.stored(`${id}`, call)) !== null;
  }

  /** @throws StoreError BAD_USER_INPUT for an item that the call does not see */
  async #assertRelations(members: object, call: Call): Promise<void> {
    for (const { member, target } of this.#table.columns) {
      const id = (members as Record<string, unknown>)[member];
      const has = target && id != null && this.#database.owned.get(target);
      if (has && !(await has(id, call))) throw noSuch(member);
    }
  }

  /**
   * The row is durable when the promise resolves.
   *
   * @throws Unavailable, StoreError BAD_USER_INPUT for a relation that
   *   does not exist; with a claim also IDEMPOTENCY_KEY_REUSED,
   *   IDEMPOTENCY_KEY_IN_USE, and SERVICE_UNAVAILABLE after an unknown outcome,
   *   because the claim makes a retry safe
   */
  async create(item: New, call = new Call()): Promise<Item> {
    const own = this.#owned?.claim(item, call) ?? item;
    const inserted = await this.#insertions.insert(own, call);
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
  async change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call = new Call(),
  ): Promise<Item | null> {
    await this.#assertRelations(change, call);
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
    return (await this.#horizon()) ?? this.#idBy(this.#statements.last);
  }

  async #idBy(statement: Statement): Promise<Int64> {
    const [[id] = []] = await this.#database.rows<ListRow>(statement, []);
    return id == null ? int64.min : int64FromDigits(id);
  }

  /** @param listener called after each insertion by this process */
  onInserted(listener: () => void): void {
    this.#onInserted.push(listener);
  }

  /**
   * Equal lists are read once and share one page; a single list needs no key.
   */
  async #readPages(listings: Listing[]): Promise<Array<Page<Item>>> {
    const keys = listings.length === 1 ? [''] : listings.map(keyOf);
    const distinct = new Map(listings.map((one, at) => [keys[at], one]));
    const horizon = await this.#horizon();
    const pages = new Map<string | undefined, Page<Item>>();
    const families = Map.groupBy(distinct, ([, one]) => one.shape.family);
    for (const entries of families.values()) {
      const lists = entries.map(([, one]) => upTo(horizon, one));
      const rows = await this.#selectLists(lists);
      for (const [at, [key, listing]] of entries.entries())
        pages.set(key, this.#toPage(rows[at] as ListRow, listing, horizon));
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
    return this.#isSharded ? this.#idBy(this.#statements.horizon) : undefined;
  }

  /**
   * Reads one item more than requested, to detect a next page. Citus rejects
   * several lists of a hash-distributed table in one statement ("complex joins
   * are only supported when ..."); from then on each list is one statement.
   *
   * @returns one row per list, in order
   */
  async #selectLists(listings: Listing[]): Promise<ListRow[]> {
    const [{ shape }] = listings as [Listing];
    if (listings.length > 1 && this.#supportsMany) {
      const many = this.#listings.together(shape);
      const parameters = listings.map((listing) => parametersOf(many, listing));
      const columns = many.slots.map((_, at) =>
        parameters.map((values) => values[at]),
      );
      try {
        return await this.#database.read(many, columns);
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        this.#supportsMany = false;
      }
    }
    // Sequential, because a batch may use only one connection.
    const rows: ListRow[] = [];
    for (const listing of listings) {
      const { page, flat } = listing.shape;
      const one = this.#isSharded ? flat : page;
      const parameters = parametersOf(one, listing);
      rows.push(...(await this.#database.read<ListRow>(one, parameters)));
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

  async #readTotals(listings: Listing[]): Promise<Total[]> {
    const totals = new Map<string, Total>();
    for (const listing of listings) {
      const key = keyOf(listing);
      if (!totals.has(key)) totals.set(key, await this.#readTotal(listing));
    }
    return listings.map((listing) => totals.get(keyOf(listing)) as Total);
  }

  async #readTotal(listing: Listing): Promise<Total> {
    const { count, estimate } = listing.shape;
    const values = parametersOf(count, listing);
    const [[counted] = []] = await this.#database.read<[string]>(count, values);
    const found = Number(counted);
    if (found <= maxExactTotal) return { count: found, isExact: true };
    const [[plan = ''] = []] = await this.#database.read<[string]>(
      estimate,
      values,
    );
    const expected = JSON.parse(plan)[0].Plan['Plan Rows'];
    // Without statistics, the estimate may be lower than what was counted.
    return { count: Math.max(found, expected), isExact: false };
  }

  /** @param horizon the id after which a page in their order ends */
  #toPage(
    row: ListRow,
    { shape, limit, isBackward }: Listing,
    horizon: Int64 | undefined,
  ): Page<Item> {
    if (row[0] === null) return { items: [], hasNext: false };
    const { columns, decodeColumns } = this.#table;
    const texts = columns.map((column, at) =>
      textsOf(column, row[at] as string),
    );
    const count = texts[0]?.length ?? 0;
    const items: Item[] = [];
    for (let place = 0; place < count && place < limit; place += 1)
      items.push(decodeColumns(texts, place) as Item);
    let hasNext = count > limit;
    const isAscendingById = !shape.by && !shape.isDescending;
    if (horizon !== undefined && isAscendingById) {
      const end = items.findIndex(({ id }) => id > horizon);
      if (end >= 0) {
        items.length = end;
        hasNext = false;
      }
    }
    const order = row[columns.length];
    const values: string[] | undefined = order && JSON.parse(order);
    const cursors =
      values &&
      items.map(({ id }, at) => cursorOf(shape.sort, `${values[at]}`, id));
    if (isBackward) {
      items.reverse();
      cursors?.reverse();
    }
    return { items: shared(items), hasNext, ...(cursors && { cursors }) };
  }
}

/** Of equal lists. */
function keyOf({ shape, limit, values, isBackward }: Listing): string {
  return `${shape.page.name} ${limit} ${isBackward} ${JSON.stringify(values)}`;
}

/** A descending list by ids that begins at an id at most. */
function upTo(horizon: Int64 | undefined, listing: Listing): Listing {
  const { shape, values } = listing;
  const isDescendingById = !shape.by && shape.isDescending;
  if (horizon === undefined || !isDescendingById) return listing;
  const isBeyond = BigInt(`${values.place_id}`) > BigInt(horizon);
  return isBeyond
    ? { ...listing, values: { ...values, place_id: `${horizon}` } }
    : listing;
}
