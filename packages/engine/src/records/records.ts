import type { EntityName } from '@mikro-orm/core';
import { escapeIdentifier as quoted } from 'pg';
import { Call, whenCommitted } from '../call.ts';
import type { BatchOptions, RunBatch } from '../database/batches.ts';
import {
  type Batches,
  currentTransaction,
  type Database,
} from '../database/database.ts';
import { lastVisible } from '../database/order.ts';
import { causeOf } from '../database/postgres-errors.ts';
import { isJudgedAgain } from '../database/through.ts';
import { orError, reportFault } from '../errors.ts';
import { retry } from '../retry.ts';
import { type Int64, int64 } from '../validation/int64.ts';
import type { FilterOf } from '../validation/list-query.ts';
import {
  type Identified,
  type Page,
  type PageQuery,
  type Total,
  totalCost,
} from '../validation/page.ts';
import type { Removal } from '../validation/schemas.ts';
import type { Validated } from '../validation/validator.ts';
import { type ChangeOf, Changes, reads } from './changes.ts';
import { createInTurn } from './create-in-turn.ts';
import { type Check, Insertions } from './insertions.ts';
import {
  ListInterpreter,
  type Listing,
  refusalOfCursor,
  seenThrough,
  withOtherEnd,
} from './lists/query.ts';
import { ListReader } from './lists/reader.ts';
import { type Followed, followItems } from './live-items.ts';
import type { CollectionOptions, Repository } from './repository.ts';
import {
  assertSeen,
  memberIn,
  membersIn,
  Ownership,
  seenRows,
  wholeOf,
} from './rows/ownership.ts';
import { type Column, Table } from './rows/table.ts';
import { type Stamped, stamp } from './stamps.ts';
import { Trace } from './trace.ts';

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

type Query<Item> = Validated<PageQuery & FilterOf<Item>>;

/**
 * Reads and writes rows of an entity's table. Concurrent reads of a kind share
 * a batch (`batches.ts`), and so do creations. Services build on it; its rules
 * are paging and `check`.
 */
export class Records<Item extends Identified, New extends InputOf<Item, New>>
  implements Repository<Item, New>
{
  readonly table: Table;
  /** Whose rows they are. */
  readonly owned: Ownership;
  readonly isTree: boolean;
  readonly #stamped: Stamped;
  /** Its name in its trace. */
  readonly #path: string;
  readonly #interpreter: ListInterpreter;
  readonly #reader: ListReader<Item>;
  readonly #lists: Batches<Listing, Page<Item>>;
  readonly #finds: Batches<Int64, Item | null>;
  readonly #totals: Batches<Listing, Total>;
  readonly #insertions: Insertions<Item, New>;
  readonly #changes: Changes<Item>;
  #onInserted: Array<() => void> = [];
  /** Reads up to where transactions are open. */
  #followed: ListReader<Item> | undefined;

  /** @throws Error with the indexes that the entity lacks */
  constructor(
    readonly database: Database,
    entity: EntityName,
    {
      computed,
      owner,
      audiences,
      members,
      check,
      checkRemoval,
      trace: option,
      path,
      horizon,
      times,
      actor,
      ...lists
    }: CollectionOptions<Item, New> = {},
  ) {
    const metadata = database.orm.getMetadata(entity);
    const module = database.model.modules?.get(entity);
    const owned = new Ownership({ owner, audiences, members }, module);
    const table = new Table(metadata, computed, owned.members);
    const { name: collection } = table;
    const own = table.columns.filter(({ path }) => !path);
    const names = own.map(({ member }) => member);
    owned.assertKnown([...names, ...Object.keys(computed ?? {})]);
    for (const member of owned.kept)
      if (table.column(member).path)
        reportFault(
          `The tenant or owner of ${collection} is a member of its own, not ${member}.`,
        );
    for (const member of owned.members)
      if (table.column(member).type !== 'text')
        reportFault(
          `Rows of ${collection} are chosen by texts, which ${member} is not.`,
        );
    const interpreter = new ListInterpreter(table, lists, owned.audiences);
    const reader = new ListReader<Item>(database, table, interpreter, horizon);
    const name = path?.slice(1) ?? collection;
    if (owned.tenant) database.tenanted.add(name);
    const stamped = { times, actor };
    const traced = option && { name, table, owned, module, option, stamped };
    const trace = traced && new Trace(database, traced, metadata);
    const queue = <In, Out>(
      operation: string,
      run: RunBatch<In, Out>,
      more?: Partial<BatchOptions>,
    ) =>
      database.batched(run, {
        ...reads,
        collection,
        operation,
        ...more,
      });
    const weigh = reader.weightOf.bind(reader);
    this.#lists = queue('list', (lists) => reader.pages(lists), { weigh });
    this.#finds = queue('find', (ids) => this.#readRows(ids));
    // Counts are slow, so they use one connection at most.
    this.#totals = queue('count', (lists) => reader.totals(lists), {
      maxInFlight: 1,
    });
    const checkNew: Check<New> = async (members, call) => {
      const tenant = owned.tenantOf(members);
      await assertSeen(database, table, members, call, tenant);
      owned.changeable(members, call);
      await check?.(members, call);
    };
    const hasRelations = table.columns.some(({ target }) => target);
    const isOwned = owned.audiences.length > 0;
    const isClaimed = isOwned || table.copied.length > 0 || actor;
    const rulesOfNew = {
      claim: isClaimed ? this.#claim.bind(this) : undefined,
      check: hasRelations ? checkNew : check,
    };
    this.#insertions = new Insertions(database, table, rulesOfNew, trace);
    const rules = { table, owned, stamped, trace, check, checkRemoval };
    this.#changes = new Changes(database, rules);
    if (trace) this.#onInserted.push(() => trace.tell());
    if (owned.hidden.length > 0) database.hiding.set(collection, owned.hidden);
    if (isOwned) database.owned.set(collection, this.#has.bind(this));
    if (isOwned || !database.referred.has(collection))
      database.referred.set(collection, {
        showing(member, call, parameter) {
          const views = owned.requireViewsShowing(member, call);
          return views && seenRows(views, table, parameter);
        },
        stored: (id, call) => this.#changes.storedOfAny(`${id}`, call),
      });
    this.table = table;
    this.isTree = table.columns.some(({ target }) => target === collection);
    this.owned = owned;
    this.#stamped = stamped;
    this.#path = name;
    this.#interpreter = interpreter;
    this.#reader = reader;
  }

  async list(query: Query<Item>, call = new Call()) {
    const own = this.narrow(query, call);
    const listing = this.#interpreter.interpret(own);
    let page: Page<Item>;
    try {
      page = await this.#lists.add(listing, call);
    } catch (error) {
      throw refusalOfCursor(listing, error);
    }
    // The operation itself costs one, and each further value of a filter one
    // more.
    call.count(page.items.length + listing.furtherValues);
    const isFirst = !listing.place && !listing.isBackward;
    const readPage = (others: Partial<PageQuery>) => {
      const beyond = this.#interpreter.interpret({ ...own, ...others });
      return this.#lists.add(beyond, call);
    };
    const whole = isFirst ? page : await withOtherEnd(page, listing, readPage);
    const items = this.shown(whole.items, call);
    return items === whole.items ? whole : { ...whole, items };
  }

  shown(items: readonly Item[], call: Call) {
    return this.owned.shown(items, call);
  }

  assertListed(query: Partial<PageQuery> & FilterOf<Item>) {
    this.#interpreter.interpret(query);
  }

  async count(query: Partial<PageQuery> & FilterOf<Item>, call = new Call()) {
    // A total has no page.
    const all = { ...query, limit: 0, after: undefined, before: undefined };
    const own = this.narrow(all, call);
    const listing = this.#interpreter.interpret(own);
    const total = await this.#totals.add(listing, call);
    call.count(totalCost);
    return total;
  }

  get ownerMembers() {
    return this.owned.members;
  }

  narrow<Query extends object>(query: Query, call: Call) {
    const { owned, table } = this;
    const isNarrowed = table.through.length === 0 || seenThrough in query;
    if (isNarrowed) return owned.narrow(query, call);
    const names = membersIn(query);
    const asked = table.through.filter(({ member }) => names.includes(member));
    const relations = asked.map(({ path }) => `${path?.by}`);
    const own = owned.narrow(query, call, relations);
    if (asked.length === 0) return own;
    return { ...own, [seenThrough]: this.#seenThrough(asked, call) };
  }

  assertDoes(deed: string, item: Item, call: Call) {
    this.owned.assertDoes(deed, wholeOf(item), call);
  }

  /** Leaves out rows of which a call does not see what they refer to. */
  #seenThrough(asked: readonly Column[], call: Call) {
    const values: string[] = [];
    const parameter = (value: string) => `{${values.push(value) - 1}}`;
    const conditions = asked.flatMap((column) => {
      const { name, target, showing } = this.#referredBy(column);
      const rows = showing(`${column.path?.member}`, call, parameter);
      if (rows === undefined) return [];
      const id = `${quoted(this.table.name)}.${name}`;
      const row = `select ${rows} from ${quoted(target)} as "#related" where id = ${id}`;
      return `coalesce((${row}), ${id} is null)`;
    });
    return { conditions, values };
  }

  /** The relation of a member of another row, and the rows of its table. */
  #referredBy({ member, path }: Column) {
    const { name, target = '' } = this.table.column(`${path?.by}`);
    const referred = this.database.referred.get(target);
    if (!referred) throw new Error(`${member} needs Records of ${target}.`);
    return { name, target, ...referred };
  }

  async find(id: Int64 | undefined, call = new Call()) {
    // Lists cannot contain the least int64, so `find` treats it as absent, too.
    if (id === undefined || id === int64.min) return null;
    const found = await this.#finds.add(id, call);
    if (!found || !this.owned.sees(found, call)) return null;
    call.count(1);
    return this.owned.show(found, call);
  }

  /**
   * Whether a call sees an item, as the primary has it, and an item of this
   * tenant may refer to it.
   */
  async #has(id: unknown, call: Call, tenant: unknown) {
    const { owned } = this;
    const views = owned.requireViews(call);
    // The database refuses what does not exist.
    if (!views && !tenant) return true;
    const stored = await this.#changes.stored(`${id}`, call);
    const own = stored && owned.tenantOf(stored);
    const isSame = !tenant || !own || own === tenant;
    return stored !== null && isSame;
  }

  /** Does work, for a trial in a transaction, which is rolled back. */
  #tried<Answer>(call: Call, work: () => Promise<Answer>) {
    if (!call.onRolledBack || currentTransaction()) return work();
    return this.database.transaction(call, { creates: [] }, work);
  }

  create(item: New, call = new Call()): Promise<Item> {
    return this.#tried(call, () => this.#create(item, call));
  }

  async #create(item: New, call: Call) {
    const inserted = await this.#insertions.insert(item, call);
    this.#tellInserted();
    return this.owned.show(inserted, call);
  }

  async createMany(inputs: ReadonlyArray<New | Error>, call = new Call()) {
    // A subclass may do more in its `create`.
    const isOverridden = this.create !== Records.prototype.create;
    if (isOverridden || call.onRolledBack)
      return createInTurn(this, inputs, call);
    const outcomes = await this.#insertions.insertMany(inputs, call);
    this.#tellInserted();
    return outcomes.map((one) => {
      if (one instanceof Error) return one;
      return this.owned.show(one, call);
    });
  }

  async #claim(item: New, call: Call): Promise<New> {
    const related = await this.#related(item, call, null);
    const own = this.owned.claim(item, call, related);
    return { ...own, ...related, ...stamp(this.#stamped, call) };
  }

  /**
   * The values, in other rows, of members that audiences choose rows by.
   *
   * @param absent the value of a relation that they do not name
   */
  async #related(members: object, call: Call, absent?: null) {
    const related: Record<string, unknown> = {};
    for (const column of this.table.copied) {
      const { path, member } = column;
      const given = memberIn(members, `${path?.by}`);
      const id = given === undefined ? absent : given;
      if (id === undefined) continue;
      const { stored } = this.#referredBy(column);
      const other = id === null ? null : await stored(id, call);
      related[member] = other && memberIn(other, `${path?.member}`);
    }
    return related;
  }

  #tellInserted() {
    for (const listener of this.#onInserted) whenCommitted(listener);
  }

  change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call = new Call(),
  ) {
    const run = () => this.#change(id, change, call);
    // The other row may have changed since it was read.
    const again = (error: unknown, attempt: number) =>
      isJudgedAgain(causeOf(error), attempt) ? 0 : undefined;
    return this.#tried(call, () => retry(run, again));
  }

  async #change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call: Call,
  ) {
    const { database, owned, table } = this;
    const seesTenants = owned.tenant && !owned.requireViews(call);
    const stored = seesTenants && (await this.#changes.stored(id, call));
    const tenant = stored && owned.tenantOf(stored);
    await assertSeen(database, table, change, call, tenant);
    const related = await this.#related(change, call);
    const changed = await this.#changes.change(id, change, call, related);
    return changed && owned.show(changed, call);
  }

  remove(id: Int64 | undefined, { version }: Removal, call = new Call()) {
    const remove = () => this.#changes.remove(id, version, call);
    return this.#tried(call, remove);
  }

  async lastId(call = new Call()) {
    const reader = this.#followed ?? this.#reader;
    const all = this.#followed && [];
    const views = this.owned.requireViews(call) ?? all;
    const queue = { collection: this.table.name, operation: 'last' };
    return this.database.inTurn(call, queue, () => reader.lastId(views));
  }

  followAll(followed: Followed, call: Call) {
    const { database, owned } = this;
    const read = async (id: Int64, reading: Call) => {
      const item = await this.#changes.stored(id, reading);
      return item && owned.show(item, reading);
    };
    const source = { collection: this.#path, read };
    return followItems(database, source, followed, call);
  }

  onInserted(listener: () => void) {
    this.#onInserted.push(listener);
    this.database.followed.set(this.table.name, 'locked');
  }

  follow(listener: () => void) {
    const { database, owned, table } = this;
    const { name: collection } = table;
    const isLocked = database.followed.get(collection) === 'locked';
    this.onInserted(listener);
    const { list }: { list: unknown } = Records.prototype;
    if (this.list !== list) return this.list.bind(this);
    const interpreter = this.#interpreter;
    let pages = this.#lists;
    if (!isLocked && owned.tenant) {
      // No tenant waits for a transaction of another one.
      database.followed.set(collection, 'marked');
      const horizon = lastVisible(collection);
      const reader = new ListReader<Item>(
        database,
        table,
        interpreter,
        horizon,
      );
      this.#followed = reader;
      const names = { collection, operation: 'follow' };
      const run = (lists: Listing[]) => reader.pages(lists);
      pages = database.batched(run, { ...reads, ...names });
    }
    // Each follower has them shown.
    return async (query: Query<Item>, call: Call) => {
      const own = this.narrow(query, call);
      return pages.add(interpreter.interpret(own), call);
    };
  }

  async #readRows(ids: Int64[]) {
    const distinct = new Set(ids);
    const wanted = [...distinct].map(String);
    const { find, findOne } = this.table;
    const rows = await (wanted.length === 1
      ? this.database.read(findOne, wanted)
      : this.database.read(find, [wanted]));
    const found = new Map<unknown, Item | Error>();
    for (const row of rows) {
      const item = orError(() => this.table.decodeRow(row) as Item);
      found.set(row[0], item);
    }
    return ids.map((id) => found.get(`${id}`) ?? null);
  }
}
