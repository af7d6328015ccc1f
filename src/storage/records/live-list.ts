import { StoreError } from '../../errors.ts';
import type { Int64 } from '../input/int64.ts';
import { type Page, pageLimit } from '../input/page.ts';
import type { Records } from './records.ts';

/** How often (ms) a followed list is read: more often after something was added, because more is likely to follow. */
const interval = { shortest: 100, longest: 500 };
/** The shortest time (ms) between two reads. Many followers, or many positions, make a read more expensive. */
const shortestGap = 20;
/** Pages that are kept for other followers at the same position. */
const maxPages = 128;

type Identified = { readonly id: Int64 };
type GrowingList<Item extends Identified> = Pick<Records<Item, never>, 'list' | 'lastId' | 'onInserted'>;

/** The part of a list to follow: the items after an id (by default only new ones), optionally filtered. */
export type FollowQuery<Item> = { readonly after?: Int64 | undefined } & {
  readonly [Filter in keyof Item]?: Item[Filter] | undefined;
};

/** Items that were added, ascending by id, and the id of the last of them. The first has only the start position. */
export interface Addition<Item = Identified> {
  readonly position: Int64;
  readonly items: readonly Item[];
}

/**
 * Follows a list by reading it again and again after the last id. Ids become visible in ascending order, so nothing is
 * missed or repeated, whichever server answers: a replica that is behind only has less.
 *
 * Followers read at the same moments, and those at the same position share one page. So a thousand of them at the end of
 * the list cost one statement a look.
 */
export class LiveList<Item extends Identified> {
  readonly #list: GrowingList<Item>;
  /** The pages that were read since the last look, by filter and position. */
  readonly #pages = new Map<string, Promise<Page<Item>>>();
  #nextLook = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #lookedAt = 0;
  #interval = interval.shortest;
  #hasNews = false;
  #followers = 0;

  constructor(list: GrowingList<Item>) {
    this.#list = list;
    list.onInserted(() => {
      const gap = Math.max(shortestGap, this.#followers / 10 + this.#pages.size);
      if (this.#followers > 0) this.#lookWithin(this.#lookedAt + gap - performance.now());
    });
  }

  /** @throws StoreError SERVICE_UNAVAILABLE at the start; later it waits until the database answers again */
  async *follow(query: FollowQuery<Item>): AsyncGenerator<Addition<Item>, void> {
    let position = query.after ?? (await this.#list.lastId());
    const filters = Object.entries(query).filter(([name, value]) => name !== 'after' && value !== undefined);
    this.#followers += 1;
    // A new follower gets the list as it is now.
    this.#pages.clear();
    try {
      yield { position, items: [] };
      for (;;) {
        // Before reading: an item that is added during the read is found by the next one.
        const nextLook = this.#nextLook.promise;
        const { items, hasNext } = await this.#read(`${filters} ${position}`, { ...query, after: position });
        position = items.at(-1)?.id ?? position;
        if (items.length > 0) yield { position, items };
        if (!hasNext) await nextLook;
      }
    } finally {
      this.#followers -= 1;
    }
  }

  #read(key: string, query: FollowQuery<Item>): Promise<Page<Item>> {
    const known = this.#pages.get(key);
    if (known) return known;
    const page = this.#list.list({ ...query, limit: pageLimit.max }).catch(emptyWhileUnavailable<Item>);
    void page.then(
      ({ items }) => (this.#hasNews ||= items.length > 0),
      () => undefined,
    );
    if (this.#pages.size >= maxPages) this.#pages.clear();
    this.#pages.set(key, page);
    this.#lookWithin(this.#interval);
    return page;
  }

  #lookWithin(milliseconds: number): void {
    const dueAt = performance.now() + milliseconds;
    if (dueAt >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => this.#look(), Math.max(0, milliseconds)).unref();
  }

  /** Wakes all followers, who read again. */
  #look(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#lookedAt = performance.now();
    this.#interval = this.#hasNews ? interval.shortest : Math.min(1.5 * this.#interval, interval.longest);
    this.#hasNews = false;
    this.#pages.clear();
    this.#nextLook.resolve();
    this.#nextLook = Promise.withResolvers();
  }
}

function emptyWhileUnavailable<Item>(error: unknown): Page<Item> {
  if (error instanceof StoreError && error.code === 'SERVICE_UNAVAILABLE') return { items: [], hasNext: false };
  throw error;
}
