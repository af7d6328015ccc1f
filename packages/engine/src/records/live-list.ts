import { Call } from '../call.ts';
import { currentTransaction } from '../database/database.ts';
import { badInput, Unavailable } from '../errors.ts';
import { retry } from '../retry.ts';
import type { Int64 } from '../validation/int64.ts';
import type { FilterOf } from '../validation/list-query.ts';
import {
  type Identified,
  type Page,
  type PageQuery,
} from '../validation/page.ts';
import { pageLimit } from '../validation/page-size.ts';
import type { Validated } from '../validation/validator.ts';
import { placeIn } from './lists/cursor.ts';
import type { Repository } from './repository.ts';
import { parameterOf } from './rows/table.ts';

/**
 * How often (ms) a followed list is polled: more often after an insertion,
 * because more are likely to follow.
 */
const pollInterval = { shortest: 100, longest: 500 };
/**
 * The shortest gap (ms) between two polls. The gap grows with followers and
 * positions, because polls become expensive.
 */
const shortestGap = 20;
/** Maximum number of cached pages: one for each filter and position. */
const maxPages = 128;

type GrowingList<Item extends Identified> = Pick<
  Repository<Item, never>,
  | 'list'
  | 'lastId'
  | 'onInserted'
  | 'follow'
  | 'assertListed'
  | 'assertKept'
  | 'narrow'
  | 'shown'
>;

/**
 * Follows the items after an id (by default only new ones), optionally
 * filtered.
 */
export type LiveQuery<Item> = Validated<
  Pick<PageQuery, 'after' | 'before' | 'sort'> & FilterOf<Item>
>;

/**
 * New items, ascending by id, and the id of the last one. The first event has
 * only the start position.
 */
export interface ListEvent<Item = Identified> {
  readonly position: Int64;
  readonly items: readonly Item[];
}

/**
 * Follows a list by polling for items after the last id. Ids become visible in
 * ascending order, so no item is missed or repeated, whichever server answers.
 *
 * All followers poll together, and those at the same position share one page: a
 * thousand followers at the end of the list cost one statement per poll.
 */
export class LiveList<Item extends Identified> {
  /** The pages read since the last poll, by filter and position. */
  readonly #pages = new Map<string, Promise<Page<Item>>>();
  #nextPoll = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #polledAt = 0;
  #interval = pollInterval.shortest;
  #hasAdditions = false;
  #followers = 0;
  readonly #pageOf: GrowingList<Item>['list'];

  constructor(private readonly list: GrowingList<Item>) {
    const onInserted = () => {
      const gap = Math.max(
        shortestGap,
        this.#followers / 10 + this.#pages.size,
      );
      if (this.#followers > 0)
        this.#pollWithin(this.#polledAt + gap - performance.now());
    };
    const follow = list.follow?.(onInserted);
    if (!follow) list.onInserted(onInserted);
    this.#pageOf = follow ?? list.list.bind(list);
  }

  /**
   * @param call needed where rows belong to callers
   * @throws StoreError BAD_USER_INPUT for another order; Unavailable at the
   *   start; later, or with `after`, it waits until the database is available
   *   again
   */
  subscribe(
    query: LiveQuery<Item>,
    call = new Call(),
  ): AsyncGenerator<ListEvent<Item>, void> {
    // Followers share pages, and others must not see what is not committed.
    if (currentTransaction())
      throw new Error('A live list needs no transaction.');
    const { sort = 'id', after, before } = query;
    if (before !== undefined)
      throw badInput('before is not for a live list: it grows at its end.');
    if (sort !== 'id')
      throw badInput('sort must be id for a live list: it grows at its end.');
    const start = placeIn({ after }, sort)?.id;
    // With the owner as a filter, because pages are read for all followers.
    const narrowed = this.list.narrow?.(query, call) ?? query;
    this.list.assertListed?.({ ...narrowed, sort, after: start ?? 0 });
    let hasLeft = false;
    // The `limit` of a list's query is that of its own page.
    const events = this.#events(
      call,
      { ...narrowed, sort, after: start, limit: pageLimit.max },
      () => hasLeft,
    );
    // A generator that awaits something hears of `return` at its next `yield`,
    // which a quiet list never reaches.
    const leave = events.return.bind(events);
    events.return = (value) => {
      hasLeft = true;
      return leave(value);
    };
    return events;
  }

  async *#events(
    call: Call,
    query: LiveQuery<Item> & PageQuery & { readonly after: Int64 | undefined },
    hasLeft: () => boolean,
  ): AsyncGenerator<ListEvent<Item>, void> {
    let position = query.after ?? (await this.list.lastId(call));
    const filters = Object.entries(query).filter(
      ([name, value]) => name !== 'after' && value !== undefined,
    );
    const key = JSON.stringify(
      filters.map(([name, value]) => [name, [value].flat().map(parameterOf)]),
    );
    this.#followers += 1;
    // A new follower gets no page that is older than it.
    this.#pages.clear();
    try {
      yield { position, items: [] };
      const check = async () =>
        this.list.assertKept?.(position, call.continued());
      if (query.after !== undefined) await onceAvailable(check, call);
      while (!hasLeft()) {
        // Taken before the read, so that the next poll finds an item that is
        // added during the read.
        const nextPoll = this.#nextPoll.promise;
        const { items, hasNext } = await this.#read(`${key} ${position}`, {
          ...query,
          after: position,
        });
        position = items.at(-1)?.id ?? position;
        const shown = this.list.shown?.(items, call) ?? items;
        if (items.length > 0) yield { position, items: shown };
        if (!hasNext) await nextPoll;
      }
    } finally {
      this.#followers -= 1;
    }
  }

  #read(key: string, query: LiveQuery<Item> & PageQuery) {
    const known = this.#pages.get(key);
    if (known) return known;
    // The owner is a filter of the query, so the operator sees no other rows.
    const page = this.#pageOf(query, Call.ofOperator()).catch(
      emptyWhileUnavailable<Item>,
    );
    void page.then(
      ({ items }) => (this.#hasAdditions ||= items.length > 0),
      () => undefined,
    );
    if (this.#pages.size >= maxPages) this.#pages.clear();
    this.#pages.set(key, page);
    this.#pollWithin(this.#interval);
    return page;
  }

  #pollWithin(milliseconds: number) {
    const dueAt = performance.now() + milliseconds;
    if (dueAt >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(
      () => this.#poll(),
      Math.max(0, milliseconds),
    ).unref();
  }

  /** Wakes all followers, which read again. */
  #poll() {
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#polledAt = performance.now();
    this.#interval = this.#hasAdditions
      ? pollInterval.shortest
      : Math.min(1.5 * this.#interval, pollInterval.longest);
    this.#hasAdditions = false;
    this.#pages.clear();
    this.#nextPoll.resolve();
    this.#nextPoll = Promise.withResolvers();
  }
}

function emptyWhileUnavailable<Item>(error: unknown): Page<Item> {
  if (error instanceof Unavailable) return { items: [], hasNext: false };
  throw error;
}

/** How long (ms) it waits for the database before it reads again, on average. */
const pause = 500;

export function onceAvailable<Result>(read: () => Promise<Result>, call: Call) {
  return retry(read, (error) => {
    const waits = error instanceof Unavailable && !call.hasLeft;
    return waits ? pause : undefined;
  });
}
