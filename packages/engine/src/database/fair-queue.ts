import type { Holder } from '../shared-budget.ts';

/** What callers wait for: one of each in turn. */
export class FairQueue<Item> {
  length = 0;
  readonly #queues = new Map<Holder, Item[]>();

  constructor(private readonly size: number) {}

  /** The first item of each caller. */
  get heads() {
    const queues = [...this.#queues.values()];
    return queues.flatMap((queue) => queue.slice(0, 1));
  }

  get items() {
    return [...this.#queues.values()].flat();
  }

  headOf(holder: Holder) {
    return this.#queues.get(holder)?.[0];
  }

  /**
   * Callers share the size as that of a `SharedBudget`.
   *
   * @returns false when the caller has too many
   */
  push(holder: Holder, item: Item) {
    const queue = this.#queues.get(holder) ?? [];
    const left = this.size - this.length;
    // One more waits then, and one less is left.
    const hasRoom = this.length === 0 || queue.length + 2 <= left;
    if (!hasRoom) return false;
    queue.push(item);
    this.length += 1;
    this.#queues.set(holder, queue);
    return true;
  }

  /** Puts items before the others of this caller. */
  unshift(holder: Holder, items: Item[]) {
    const queue = this.#queues.get(holder) ?? [];
    this.#queues.set(holder, [...items, ...queue]);
    this.length += items.length;
  }

  /**
   * Takes the next items.
   *
   * @param others whose callers' items go before these
   * @param weigh for how many an item counts
   */
  take(
    count: number,
    others?: FairQueue<unknown>,
    weigh: (item: Item) => number = () => 1,
  ) {
    let weight = 0;
    const taken: Item[] = [];
    // A map yields what is set meanwhile, last.
    for (const [holder, queue] of this.#queues) {
      if (weight >= count) break;
      if (others?.headOf(holder)) continue;
      const item = queue.shift() as Item;
      taken.push(item);
      weight += weigh(item);
      this.#queues.delete(holder);
      if (queue.length > 0) this.#queues.set(holder, queue);
    }
    this.length -= taken.length;
    return taken;
  }

  /** Removes the items for which `keeps` is false. */
  filter(keeps: (item: Item) => boolean) {
    for (const [holder, queue] of this.#queues) {
      const kept = queue.filter(keeps);
      this.length += kept.length - queue.length;
      if (kept.length > 0) this.#queues.set(holder, kept);
      else this.#queues.delete(holder);
    }
  }
}
