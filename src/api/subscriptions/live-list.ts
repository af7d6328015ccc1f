import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../../errors.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import type { NextPage, Source } from './source.ts';
import { pageBytes, Tail, type Waiter } from './tail.ts';

/** How long (ms) a follower waits when the database does not answer. */
const pause = 500;

/** The part of a list that somebody follows. */
export interface FollowQuery {
  /** Everything after this id; only what is created from now on when undefined. */
  readonly after?: Int64 | undefined;
}

/** A list that goes on: what is there after a position, and then whatever is created. */
export class LiveList<Item extends { readonly id: Int64 }> {
  readonly #source: Source<Item>;
  readonly #tail: Tail<Item>;

  constructor(source: Source<Item>) {
    this.#source = source;
    this.#tail = new Tail(source);
  }

  /**
   * Follows the list. Every item comes once, ascending by id.
   *
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async follow(
    query: FollowQuery & { readonly [Filter in keyof Item]?: Item[Filter] | undefined },
  ): Promise<Follower<Item>> {
    const { filteredBy } = this.#source;
    const filter = filteredBy === undefined ? null : (query[filteredBy as keyof Item] ?? null);
    const position = query.after ?? (await this.#source.last());
    return new Follower(this.#source, this.#tail, position, filter);
  }
}

/**
 * Somebody who follows a list, page by page, each read when it is asked for: a slow one holds one page and nothing else.
 */
export class Follower<Item extends { readonly id: Int64 }> implements AsyncIterableIterator<readonly Item[]>, Waiter {
  /** All up to here has been returned. */
  position: Int64;
  readonly #source: Source<Item>;
  readonly #tail: Tail<Item>;
  readonly #filter: unknown;
  #isOver = false;
  #woken: (() => void) | undefined;

  constructor(source: Source<Item>, tail: Tail<Item>, position: Int64, filter: unknown) {
    this.#source = source;
    this.#tail = tail;
    this.position = position;
    this.#filter = filter;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws what is no failure that passes */
  async next(): Promise<IteratorResult<readonly Item[], undefined>> {
    if (!this.#isOver) this.#tail.join(this);
    while (!this.#isOver) {
      const page = this.#tail.since(this.position, this.#filter) ?? (await this.#read());
      if (this.#isOver) break;
      if (page) this.position = page.upTo;
      if (page && page.items.length > 0) return { done: false, value: page.items };
      if (!page) await sleep(pause, undefined, { ref: false });
      else if (!page.hasNext) await this.#more();
    }
    return { done: true, value: undefined };
  }

  /** Ends it, also while it waits. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#tail.leave(this);
    this.wake();
    return { done: true, value: undefined };
  }

  wake(): void {
    this.#woken?.();
  }

  #more(): Promise<void> {
    return new Promise((woken) => {
      this.#woken = woken;
      this.#tail.wait(this);
    });
  }

  /** @returns undefined when the database does not answer now */
  async #read(): Promise<NextPage<Item> | undefined> {
    try {
      return await this.#source.next({ after: this.position, filter: this.#filter, maxBytes: pageBytes });
    } catch (error) {
      if (error instanceof StoreError && error.code === 'SERVICE_UNAVAILABLE') return undefined;
      throw error;
    }
  }
}
