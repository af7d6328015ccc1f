import type { Call } from '../call.ts';
import type { Statement } from '../database/database.ts';
import type { Int64 } from '../validation/int64.ts';
import type { FilterOf, Lists } from '../validation/list-query.ts';
import type { Identified, Page, PageQuery, Total } from '../validation/page.ts';
import type { Removal } from '../validation/schemas.ts';
import type { Validated } from '../validation/validator.ts';
import type { ChangeOf, CheckRemoval } from './changes.ts';
import type { Check } from './insertions.ts';
import type { Owned } from './rows/ownership.ts';
import type { Computed } from './rows/table.ts';
import type { Stamped } from './stamps.ts';
import type { TraceOption } from './trace.ts';

/**
 * What the APIs, live lists and commands ask of a collection. `Records`
 * implements it with statements that concurrent calls share,
 * `test/modules/repositories/entity-records.ts` with MikroORM's EntityManager.
 *
 * Every method counts the items of its answer (`call.count`), and throws
 * Unavailable when the database is.
 */
export interface Repository<Item extends Identified, New> {
  /**
   * Reads one page.
   *
   * @throws StoreError BAD_USER_INPUT for a list that is not declared, or a
   *   cursor of another order
   */
  list(
    query: Validated<PageQuery & FilterOf<Item>>,
    call?: Call,
  ): Promise<Page<Item>>;
  /** Counts the items of a list, on all its pages. */
  count(
    query: Partial<PageQuery> & FilterOf<Item>,
    call?: Call,
  ): Promise<Total>;
  /**
   * @param id undefined when the client's id is invalid, so there is no such
   *   item
   * @returns null when there is none
   */
  find(id: Int64 | undefined, call?: Call): Promise<Item | null>;
  /**
   * Adds an item, which is durable when the promise resolves. Ids become visible
   * in ascending order. With a claim of the call (`call.nextClaim`), the same
   * creation gets the same answer.
   *
   * @throws StoreError BAD_USER_INPUT for a relation that does not exist,
   *   CONFLICT for a value that is taken; with a claim also
   *   IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_IN_USE, and SERVICE_UNAVAILABLE
   *   after an unknown outcome, because the claim makes a retry safe
   */
  create(item: New, call?: Call): Promise<Item>;
  /**
   * Creates several at once, as `create` does one after the other: their ids
   * ascend in the order of the inputs, and one that is refused leaves the others.
   *
   * @param inputs those that are invalid as errors
   * @returns an item or an error for each
   */
  createMany?(
    inputs: ReadonlyArray<New | Error>,
    call?: Call,
  ): Promise<Array<Item | Error>>;
  /**
   * Changes an item if it has the given version, which each change increments.
   *
   * @returns null when there is none
   * @throws StoreError CONFLICT with the current `version`, or for a value that
   *   is taken; BAD_USER_INPUT for an empty change or a relation that does not
   *   exist
   */
  change(
    id: Int64 | undefined,
    change: Validated<ChangeOf<Item>>,
    call?: Call,
  ): Promise<Item | null>;
  /**
   * @returns null when there is none
   * @throws StoreError CONFLICT when it has another version, or others refer to
   *   it
   */
  remove(
    id: Int64 | undefined,
    removal: Removal,
    call?: Call,
  ): Promise<true | null>;
  /**
   * The greatest id of the rows that a call sees, or the least int64. Replicas
   * may lag behind it.
   */
  lastId(call?: Call): Promise<Int64>;
  /**
   * Transactions then create rows one after another, those of tenants, too:
   * a page of `list` has no end before what is not visible yet.
   *
   * @param listener called after each creation by this process; it does not
   *   throw
   */
  onInserted(listener: () => void): void;
  /**
   * The same for a live list.
   *
   * @returns reads a page like `list`, of ids up to which all are visible
   */
  follow?(listener: () => void): Repository<Item, New>['list'];
  /** @throws StoreError BAD_USER_INPUT as `list` does */
  assertListed?(query: Partial<PageQuery> & FilterOf<Item>): void;
  /** @throws StoreError GONE when items after this one may have expired */
  assertKept?(id: Int64, call: Call): Promise<void>;
  /** The members that rows are chosen by, where they belong to callers. */
  readonly ownerMembers?: readonly string[] | undefined;
  /** True where rows refer to others of their own collection. */
  readonly isTree?: boolean;
  /**
   * For a transition, before its rule judges: that may tell of members which the
   * call does not see.
   *
   * @throws StoreError FORBIDDEN
   */
  assertDoes?(deed: string, item: Item, call: Call): void;
  /** Items without the members that a call does not see. */
  shown?(items: readonly Item[], call: Call): readonly Item[];
  /** Adds what a call sees to the filters, where rows belong to callers. */
  narrow?<Query extends object>(query: Query, call: Call): Query;
}

/**
 * What a collection declares: its lists, as in `listQuery`, and more. Each
 * combination of filters needs an index that ends with the id; for each order
 * another one, with its member before the id; and all of these again with the
 * owner.
 */
export interface CollectionOptions<Item, New>
  extends Lists<keyof Item & string>,
    Owned<keyof Item & string>,
    Stamped {
  /** Members of items that follow from others. */
  readonly computed?: Computed;
  /** A rule for creations and changes. */
  readonly check?: Check<New, Item>;
  readonly checkRemoval?: CheckRemoval<Item>;
  /** Stores who changes what, where the feature `changes` is listed. */
  readonly trace?: TraceOption<keyof Item & string>;
  /** Names it in its trace; by default its table does. */
  readonly path?: string;
  /** Reads the last id of its lists, where ids become visible out of order. */
  readonly horizon?: Statement;
  /** Filters of which an item matches one at least. */
  readonly either?: readonly (keyof Item & string)[];
}
