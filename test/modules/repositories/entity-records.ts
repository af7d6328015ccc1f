import { type EntityName, LockMode, raw, wrap } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { Call, whenCommitted } from '#engine/call.js';
import {
  currentTransaction,
  type Database,
} from '#engine/database/database.js';
import { type ChangeOf, staleVersion } from '#engine/records/changes.js';
import { cursorOf } from '#engine/records/lists/cursor.js';
import {
  ListInterpreter,
  type Listing,
  refusalOfCursor,
  withOtherEnd,
} from '#engine/records/lists/query.js';
import type { InputOf } from '#engine/records/records.js';
import type {
  CollectionOptions,
  Repository,
} from '#engine/records/repository.js';
import {
  assertSeen,
  Ownership,
  wholeOf,
} from '#engine/records/rows/ownership.js';
import { type Column, parameterOf, Table } from '#engine/records/rows/table.js';
import type { Source } from '#engine/records/select.js';
import { type Int64, int64 } from '#engine/validation/int64.js';
import type { FilterOf } from '#engine/validation/list-query.js';
import {
  type Page,
  type PageQuery,
  type Total,
  totalCost,
} from '#engine/validation/page.js';
import type { Removal } from '#engine/validation/schemas.js';
import type { Validated } from '#engine/validation/validator.js';

type Row = { readonly id: Int64; readonly version?: number };

/**
 * A collection on MikroORM's EntityManager, method by method. `new Records(...)`
 * takes its place by one word, and shares statements.
 */
export class EntityRecords<Item extends Row, New extends object>
  implements Repository<Item, New>
{
  readonly table: Table;
  readonly owned: Ownership;
  readonly #interpreter: ListInterpreter;
  readonly #listeners: Array<() => void> = [];

  constructor(
    readonly database: Database,
    protected readonly entity: EntityName<any>,
    private readonly options: CollectionOptions<Item, New> = {},
  ) {
    const { computed } = options;
    this.table = new Table(database.orm.getMetadata(entity), computed);
    this.owned = new Ownership(options, database.model.modules?.get(entity));
    const { audiences } = this.owned;
    this.#interpreter = new ListInterpreter(this.table, options, audiences);
    const has = async (id: unknown, call: Call, tenant: unknown) => {
      const found = await this.find(id as Int64, call);
      const own = found && this.owned.tenantOf(found);
      const isSame = !tenant || !own || own === tenant;
      return found !== null && isSame;
    };
    if (audiences.length > 0) database.owned.set(this.table.name, has);
    const names = this.table.columns.map(({ member }) => member);
    this.owned.assertKnown([...names, ...Object.keys(computed ?? {})]);
    database.hiding.set(this.table.name, this.owned.hidden);
  }

  get ownerMembers() {
    return this.owned.members;
  }

  /** The rows that a call sees, or may write. */
  #seenBy(call: Call, action?: 'write') {
    const views = this.owned.requireViews(call, action);
    return views ? { $or: views.map(({ values }) => ({ ...values })) } : {};
  }

  narrow<Query extends object>(query: Query, call: Call): Query {
    return this.owned.narrow(query, call);
  }

  assertListed(query: Partial<PageQuery> & FilterOf<Item>) {
    this.#interpreter.interpret(query);
  }

  async list(query: Validated<PageQuery & FilterOf<Item>>, call = new Call()) {
    const own = this.narrow(query, call);
    const listing = this.#interpreter.interpret(own);
    const page = await this.#page(listing, call);
    call.count(page.items.length + listing.furtherValues);
    const whole = await withOtherEnd(page, listing, (others) =>
      this.#page(this.#interpreter.interpret({ ...own, ...others }), call),
    );
    return { ...whole, items: this.shown(whole.items, call) };
  }

  assertDoes(deed: string, item: Item, call: Call) {
    this.owned.assertDoes(deed, wholeOf(item), call);
  }

  shown(items: readonly Item[], call: Call) {
    return this.owned.shown(items, call);
  }

  async #page(listing: Listing, call: Call): Promise<Page<Item>> {
    const { limit, isBackward, shape } = listing;
    const { isDescending, sort } = shape;
    const [by] = shape.by;
    const direction = isDescending ? ('desc' as const) : ('asc' as const);
    const keys = [...(by ? [raw(by.key)] : []), 'id'];
    const order = keys.map((key) => ({ [key]: direction }));
    const options = { orderBy: order, limit: limit + 1, ...unshared };
    const rows = await this.database
      .reading(call, (em) => em.find(this.entity, whereOf(listing), options))
      .catch((error) => {
        throw refusalOfCursor(listing, error);
      });
    const items = rows.slice(0, limit).map((row) => this.#itemOf(row));
    if (isBackward) items.reverse();
    const cursorAt = (item: Item) =>
      by && cursorOf({ id: item.id, value: sortedBy(item, by) }, sort);
    return {
      items,
      hasNext: rows.length > limit,
      ...(by && { cursors: items.map((item) => `${cursorAt(item)}`) }),
    };
  }

  async count(
    query: Partial<PageQuery> & FilterOf<Item>,
    call = new Call(),
  ): Promise<Total> {
    const { limit: _, after: __, before: ___, ...filters } = query;
    const listing = this.#interpreter.interpret(this.narrow(filters, call));
    const count = await this.database.reading(call, (em) =>
      em.count(this.entity, whereOf(listing)),
    );
    call.count(totalCost);
    return { count, isExact: true };
  }

  async find(id: Int64 | undefined, call = new Call()): Promise<Item | null> {
    if (id === undefined) return null;
    const found = await this.database.reading(call, (em) =>
      em.findOne(this.entity, { id, ...this.#seenBy(call) }, unshared),
    );
    if (found) call.count(1);
    return found && this.owned.show(this.#itemOf(found), call);
  }

  async create(item: New, call = new Call()): Promise<Item> {
    const { check } = this.options;
    const own = this.owned.claim(item, call);
    const created = await this.#write(call, own, async (em) => {
      const tenant = this.owned.tenantOf(own);
      await assertSeen(this.database, this.table, own, call, tenant);
      await check?.(own, call);
      const row = em.create(this.entity, own);
      await em.flush();
      // PostgreSQL spells decimals, and sets defaults.
      await em.refresh(row);
      return this.#itemOf(row);
    });
    call.count(1);
    for (const listener of this.#listeners) whenCommitted(listener);
    return this.owned.show(created, call);
  }

  async change(
    id: Int64 | undefined,
    { version, ...change }: Validated<ChangeOf<Item>>,
    call = new Call(),
  ): Promise<Item | null> {
    const { check } = this.options;
    const given = Object.entries(change).filter(
      ([name, value]) => value !== undefined && !this.owned.kept.includes(name),
    );
    this.owned.changeable(change, call);
    return this.#write(call, undefined, async (em) => {
      const row = await this.#locked(em, id, call);
      if (row) this.owned.changeable(change, call, row);
      const tenant = row && this.owned.tenantOf(row);
      await assertSeen(this.database, this.table, change, call, tenant);
      if (!row) return null;
      if (row.version !== version) throw staleVersion(row.version, version);
      if (this.owned.restricts(call)) this.owned.assertMakes(change, row, call);
      await check?.(change as Partial<New>, call, this.#itemOf(row));
      em.assign(row, Object.fromEntries(given));
      await em.flush();
      await em.refresh(row);
      call.count(1);
      return this.owned.show(this.#itemOf(row), call);
    });
  }

  async remove(
    id: Int64 | undefined,
    { version }: Removal,
    call = new Call(),
  ): Promise<true | null> {
    const { checkRemoval } = this.options;
    return this.#write(call, undefined, async (em) => {
      const row = await this.#locked(em, id, call);
      if (!row) return null;
      const isStale = version !== undefined && row.version !== version;
      if (isStale) throw staleVersion(row.version, version);
      if (this.owned.restricts(call))
        this.owned.assertDoes('remove', row, call);
      await checkRemoval?.(this.#itemOf(row), call);
      await em.remove(row).flush();
      return true;
    });
  }

  async lastId(call = new Call()): Promise<Int64> {
    const seen = this.#seenBy(call);
    const [last] = await this.database.reading(call, (em) =>
      em.find(this.entity, seen, { orderBy: { id: 'desc' }, limit: 1 }),
    );
    return last?.id ?? int64.min;
  }

  onInserted(listener: () => void) {
    this.#listeners.push(listener);
    this.database.followed.set(this.table.name, 'locked');
  }

  /** Joins the open transaction, or begins one with the key of the call. */
  #write<Answer>(
    call: Call,
    input: object | undefined,
    work: (em: EntityManager) => Promise<Answer>,
  ): Promise<Answer> {
    const open = currentTransaction();
    const creates = input ? [this.entity] : [];
    const frame = { creates, ...(input && { input }) };
    return open ? work(open.em) : this.database.transaction(call, frame, work);
  }

  async #locked(em: EntityManager, id: Int64 | undefined, call: Call) {
    if (id === undefined) return null;
    const lockMode = LockMode.PESSIMISTIC_WRITE;
    const options = { lockMode, refresh: true };
    const seen = { id, ...this.#seenBy(call, 'write') };
    return em.findOne(this.entity, seen, options);
  }

  #itemOf(row: object): Item {
    const item = wrap(row).toPOJO();
    const { computed = {} } = this.options;
    for (const [name, of] of Object.entries(computed))
      Object.defineProperty(item, name, {
        get: () => of(item as never),
        enumerable: true,
      });
    return item as Item;
  }
}

/** Rows that only this call has. */
const unshared = { disableIdentityMap: true };

/** The filters of a list, and where it begins and ends. */
function whereOf({ shape, values }: Listing): object {
  const { ends, hasPlace, isDescending } = shape;
  const [by] = shape.by;
  const parts = shape.parts.map(({ conditions }) => {
    const filters = conditions.map(({ kind, column, slot }) => {
      const value = values[slot];
      const among = kind === 'in' && { $in: JSON.parse(`${value}`) };
      return { [column.member]: among || (kind === 'null' ? null : value) };
    });
    return { $and: filters };
  });
  const places = ends.map(({ kind, slot, id }) => ({
    side: kind as string,
    value: values[slot],
    id: `${id}`,
  }));
  if (hasPlace)
    places.push({
      side: isDescending ? 'to' : 'from',
      value: values.place,
      id: `${values.place_id}`,
    });
  // Rows of values compare as an index sorts them; `$or` would read more rows.
  const key = by?.isFolded ? 'lower(?::text) collate "C"' : `?::${by?.type}`;
  const bounds = places.map(({ side, value, id }) => ({
    [raw(by ? `(${by.key}, "id")` : '("id")')]: {
      [side === 'from' ? '$gt' : '$lte']: by
        ? raw(`(${key}, ?::bigint)`, [value, id])
        : raw('(?::bigint)', [id]),
    },
  }));
  // MikroORM refuses an empty condition among several.
  const all = parts.length > 1 ? [{ $or: parts }] : parts;
  return { $and: [...all, ...bounds] };
}

/** The text of an item's value that PostgreSQL sorts by. */
function sortedBy(item: object, { member, isFolded }: Column): string {
  const value = parameterOf((item as Record<string, unknown>)[member]);
  return isFolded ? `${value}`.toLowerCase() : `${value}`;
}

/** `Records`, or this. */
export type Repositories = new <
  Item extends Row,
  New extends InputOf<Item, New>,
>(
  database: Database,
  entity: EntityName,
  options?: CollectionOptions<Item, New>,
) => Repository<Item, New> & Source<Item>;
