import type { Int64 } from '../../storage/input/int64.ts';
import { shared } from '../../storage/input/page.ts';
import type { NextPage, Source } from './source.ts';

/** Bytes of a page, which is what one follower holds at most; and of all that is kept. */
export const pageBytes = 65_536;
const keptBytes = 16 * pageBytes;
/** How often (ms) the list is looked at while somebody waits: after news, and at most. */
const interval = { shortest: 100, longest: 500 };
/** How many texts and their items are remembered for others at the same position. */
const maxCuts = 64;
/** Milliseconds between two looks after creations of this process; with many followers a look serves more of them. */
const gapFor = (followers: number) => Math.max(20, followers / 10);

/** Somebody who has all up to a position. */
export interface Waiter {
  readonly position: Int64;
  wake(): void;
}

/**
 * The end of a list, kept in memory and looked at by one loop for all who follow it; nobody looks while nobody follows.
 * A page is read after the last one, so what is kept is complete between two ids, whichever server has answered: a
 * replica that is behind only has less.
 */
export class Tail<Item extends { readonly id: Int64 }> {
  readonly #source: Source<Item>;
  /** All items in (from, upTo]. */
  #pages: Array<NextPage<Item>> = [];
  #bytes = 0;
  #from: Int64 = 0;
  #upTo: Int64 = 0;
  #isKept = false;
  readonly #followers = new Set<Waiter>();
  readonly #waiting = new Set<Waiter>();
  /** What several followers at one position get, by position and filter: their texts are shared, too. */
  readonly #cuts = new Map<string, NextPage<Item>>();
  #timer: NodeJS.Timeout | undefined;
  #lookAt = 0;
  #lookedAt = 0;
  #interval = interval.shortest;
  #isLooking = false;
  #isStale = false;

  constructor(source: Source<Item>) {
    this.#source = source;
    source.onInserted(() => this.#created());
  }

  /** What is kept after a position, a page at most; undefined when that reaches farther back. */
  since(position: Int64, filter: unknown): NextPage<Item> | undefined {
    if (!this.#isKept || position < this.#from) return undefined;
    const key = `${position} ${filter === null ? '' : `=${filter}`}`;
    let cut = this.#cuts.get(key);
    if (!cut) {
      cut = this.#cut(position, filter);
      // Clients choose positions: without a bound each of them would leave a text behind.
      if (this.#cuts.size >= maxCuts) this.#cuts.clear();
      this.#cuts.set(key, cut);
    }
    return cut;
  }

  /** Wakes it when there may be more. */
  wait(waiter: Waiter): void {
    const { position } = waiter;
    // Whoever is alone begins where it is: what came before is nobody's. A client may have named any position, which
    // must not keep the others from following together: it is begun anew for the first of them.
    const isPassed = this.#waiting.size === 0 && this.#upTo < position;
    if (!this.#isKept || isPassed || position < this.#from) this.#begin(position);
    if (position < this.#upTo) waiter.wake();
    else {
      this.#waiting.add(waiter);
      this.#lookWithin(this.#interval);
    }
  }

  /** It follows from now on; it may be said again. */
  join(follower: Waiter): void {
    this.#followers.add(follower);
  }

  /** The last one leaves nothing behind. */
  leave(follower: Waiter): void {
    this.#waiting.delete(follower);
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    this.#forgetAll();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #forgetAll(): void {
    this.#pages = [];
    this.#bytes = 0;
    this.#cuts.clear();
    this.#isKept = false;
  }

  #begin(position: Int64): void {
    this.#forgetAll();
    this.#from = position;
    this.#upTo = position;
    this.#isKept = true;
  }

  #cut(position: Int64, filter: unknown): NextPage<Item> {
    const member = this.#source.filteredBy as keyof Item;
    const items: Item[] = [];
    let bytes = 0;
    let upTo = position < this.#upTo ? this.#upTo : position;
    const first = this.#pages.findLastIndex((page) => page.upTo <= position) + 1;
    for (const page of this.#pages.slice(first)) {
      for (const item of page.items) {
        if (item.id > position && (filter === null || item[member] === filter)) items.push(item);
      }
      bytes += page.bytes;
      upTo = page.upTo;
      if (bytes >= pageBytes) break;
    }
    return { items: shared(items), upTo, bytes, hasNext: upTo < this.#upTo };
  }

  #created(): void {
    this.#isStale = true;
    if (this.#waiting.size > 0) this.#lookWithin(this.#lookedAt + gapFor(this.#waiting.size) - performance.now());
  }

  #lookWithin(milliseconds: number): void {
    const at = performance.now() + Math.max(0, milliseconds);
    if (this.#isLooking || (this.#timer && this.#lookAt <= at)) return;
    clearTimeout(this.#timer);
    this.#lookAt = at;
    this.#timer = setTimeout(() => this.#look(), Math.max(0, milliseconds)).unref();
  }

  async #look(): Promise<void> {
    this.#timer = undefined;
    this.#isLooking = true;
    this.#isStale = false;
    this.#lookedAt = performance.now();
    let hasNext = false;
    try {
      const after = this.#upTo;
      const page = await this.#source.next({ after, filter: null, maxBytes: pageBytes });
      hasNext = page.hasNext;
      this.#interval = page.items.length > 0 ? interval.shortest : Math.min(1.5 * this.#interval, interval.longest);
      // Elsewhere it would leave a gap: it has been begun anew meanwhile, or nobody follows any more.
      if (this.#isKept && this.#upTo === after) this.#keep(page);
    } catch {
      // The database is away, which the log says elsewhere. Nobody misses anything: they go on from where they are.
      this.#interval = interval.longest;
    }
    this.#isLooking = false;
    if (this.#followers.size === 0) return;
    this.#wake();
    const gap = gapFor(this.#waiting.size);
    this.#lookWithin(hasNext ? 0 : this.#isStale ? gap : Math.max(gap, this.#interval));
  }

  #keep(page: NextPage<Item>): void {
    if (page.upTo <= this.#upTo) return;
    this.#upTo = page.upTo;
    this.#cuts.clear();
    // Pages without items too: an id may be taken by what was rolled back, and is passed.
    this.#pages.push(page);
    this.#bytes += page.bytes;
    while (this.#bytes > keptBytes) {
      const oldest = this.#pages.shift() as NextPage<Item>;
      this.#bytes -= oldest.bytes;
      this.#from = oldest.upTo;
    }
  }

  #wake(): void {
    for (const waiter of this.#waiting) {
      if (waiter.position >= this.#upTo) continue;
      this.#waiting.delete(waiter);
      waiter.wake();
    }
  }
}
