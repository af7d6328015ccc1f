import type { EntityName } from '@mikro-orm/core';
import { Call, whenCommitted } from '../call.ts';
import type { RunBatch } from '../database/batches.ts';
import type { Batches, Database, Statement } from '../database/database.ts';
import { isUnsupported } from '../database/postgres-errors.ts';
import { type Int64, int64, int64FromDigits } from '../validation/int64.ts';
import type { FilterOf } from '../validation/list-query.ts';
import {
  maxExactTotal,
  type Page,
  type PageQuery,
  type Total,
  totalCost,
} from '../validation/page.ts';
import type { Removal } from '../validation/schemas.ts';
import type { Validated } from '../validation/validator.ts';
import { type ChangeOf, Changes } from './changes.ts';
import { cursorOf } from './cursor.ts';
import { type Check, Insertions } from './insertions.ts';
import { parametersOf } from './list-statements.ts';
import {
  type Listing,
  Listings,
  refusalOfCursor,
  withOtherEnd,
} from './listing.ts';
import { assertSeen, Ownership } from './ownership.ts';
import type { CollectionOptions, Repository } from './repository.ts';
import { shared } from './shared-items.ts';
import { type Statements, statementsFor } from './statements.ts';
import { Table, textsOf } from './table.ts';

/**
 * An input for new items: each member has the name and type of an item's
 * member.
 */
export type InputOf<Item, New> = {
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
> implements Repository<Item, New>
{
  readonly table: Table;
  /** Whose rows they are. */
  readonly owned: Ownership | undefined;
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

  /** @throws Error with the indexes that the entity lacks */
  constructor(
    readonly database: Database,
    entity: EntityName,
    {
      computed,
      owner,
      check,
      checkRemoval,
      ...lists
    }: CollectionOptions<Item, New> = {},
  ) {
    this.table = new Table(database.orm.getMetadata(entity), computed);
    this.owned =
      owner && new Ownership(owner, database.model.modules?.get(entity));
    const hasRelations = this.table.columns.some(({ target }) => target);
    this.#statements = statementsFor(this.table);
    const all = this.owned?.filter(lists) ?? lists;
    this.#listings = new Listings(this.table, all, this.ownerMember);
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
        collection: this.table.name,
        operation,
      });
    this.#lists = queue('list', (queries) => this.#readPages(queries));
    this.#finds = queue('find', (ids) => this.#readRows(ids));
    // Counts are slow, so they use one connection at most.
    this.#totals = queue('count', (queries) => this.#readTotals(queries), 1);
    const checkNew: Check<New> = async (members, call) => {
      await assertSeen(database, this.table, members, call);
      await check?.(members, call);
    };
    this.#insertions = new Insertions(
      database,
      this.table,
      this.#statements,
      hasRelations ? checkNew : check,
    );
    this.#changes = new Changes(
      database,
      this.table,
      this.#statements.findOne,
      { owned: this.owned, check, checkRemoval },
    );
    if (this.owned)
      database.owned.set(this.table.name, (id, call) => this.#has(id, call));
  }

  async list(
    query: Validated<PageQuery & FilterOf<Item>>,
    call = new Call(),
  ): Promise<Page<Item>> {
    const own = this.narrow(query, call);
    const listing = this.#listings.read(own);
    const page = await this.#readPage(listing, call);
    // A list costs one anyway, and each further value of a filter one more.
    call.count(page.items.length + listing.among);
    return withOtherEnd(page, listing, (others) =>
      this.#readPage(this.#listings.read({ ...own, ...others }), call),
    );
  }

  assertListed(query: Partial<PageQuery> & FilterOf<Item>): void {
    this.#listings.read(query);
  }

  #readPage(listing: Listing, call: Call): Promise<Page<Item>> {
    return this.#lists.add(listing, call).catch((error) => {
      throw refusalOfCursor(listing, error);
    });
  }

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

  get ownerMember(): string | undefined {
    return this.owned?.member;
  }

  narrow<Query extends object>(query: Query, call: Call): Query {
    return this.owned?.narrow(query, call) ?? query;
  }

  async find(id: Int64 | undefined, call = new Call()): Promise<Item | null> {
    // Lists cannot contain the least int64, so `find` treats it as absent, too.
    if (id === undefined || id === int64.min) return null;
    const found = await this.#finds.add(id, call);
    if (!found || this.owned?.sees(found, call) === false) return null;
    call.count(1);
    return found;
  }

  /** Whether a call sees an item, as the primary has it. */
  async #has(id: unknown, call: Call): Promise<boolean> {
    const owner = this.owned?.ownerIn(call);
    // The database refuses what does not exist.
    if (owner === undefined) return true;
    return (await this.#changes.stored(`${id}`, call)) !== null;
  }

  async create(item: New, call = new Call()): Promise<Item> {
    const own = this.owned?.claim(item, call) ?? item;
    const inserted = await this.#insertions.insert(own, call);
    this.#tellInserted();
    return inserted;
  }

  async createMany(
    inputs: ReadonlyArray<New | Error>,
    call = new Call(),
  ): Promise<Array<Item | Error>> {
    const own = inputs.map((input) => {
      if (input instanceof Error) return input;
      return this.owned?.claim(input, call) ?? input;
    });
    const outcomes = await this.#insertions.insertMany(own, call);
    this.#tellInserted();
    return outcomes;
  }

  #tellInserted() {
    for (const listener of this.#onInserted) whenCommitted(listener);
  }

  async change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call = new Call(),
  ): Promise<Item | null> {
    await assertSeen(this.database, this.table, change, call);
    return this.#changes.change(id, change, call);
  }

  remove(
    id: Int64 | undefined,
    { version }: Removal,
    call?: Call,
  ): Promise<true | null> {
    return this.#changes.remove(id, version, call);
  }

  async lastId(): Promise<Int64> {
    return (await this.#horizon()) ?? this.#idBy(this.#statements.last);
  }

  async #idBy(statement: Statement): Promise<Int64> {
    const [[id] = []] = await this.database.rows<ListRow>(statement, []);
    return id == null ? int64.min : int64FromDigits(id);
  }

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
    this.#isSharded ??= await this.database.isSharded(this.table.name);
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
        return await this.database.read(many, columns);
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
      rows.push(...(await this.database.read<ListRow>(one, parameters)));
    }
    return rows;
  }

  async #readRows(ids: Int64[]): Promise<Array<Item | null>> {
    const wanted = [...new Set(ids)].map(String);
    const { find, findOne } = this.#statements;
    const rows = await (wanted.length === 1
      ? this.database.read<ListRow>(findOne, wanted)
      : this.database.read<ListRow>(find, [wanted]));
    const found = new Map(
      rows.map((row) => [row[0], this.table.decodeRow(row) as Item]),
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

  /** @param horizon the id after which a page in their order ends */
  #toPage(
    row: ListRow,
    { shape, limit, isBackward }: Listing,
    horizon: Int64 | undefined,
  ): Page<Item> {
    if (row[0] === null) return { items: [], hasNext: false };
    const { columns, decodeColumns } = this.table;
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
