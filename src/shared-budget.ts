/** A key's id, or the network of a client without a key. */
export type Holder = number | string | undefined;

/**
 * A limit that callers share: each may take more while it then holds no more
 * than is left ("dynamic thresholds", Choudhury and Hahne, 1998). So one caller
 * alone gets a half, two a third each, and the next one always finds room.
 */
export class SharedBudget {
  /** What all hold. */
  used = 0;
  readonly #held = new Map<Holder, number>();

  constructor(private readonly size: number) {}

  /** @returns false when it is too much */
  take(holder: Holder, amount = 1): boolean {
    const hasRoom = this.hasRoom(holder, amount);
    if (hasRoom) this.add(holder, amount);
    return hasRoom;
  }

  /** A first holder may take any amount. */
  hasRoom(holder: Holder, amount: number): boolean {
    // What is taken is held, and not left.
    return this.used === 0 || this.excess(holder) + 2 * amount <= 0;
  }

  /** Counts what cannot be refused, or, below zero, what is given back. */
  add(holder: Holder, amount: number) {
    const held = (this.#held.get(holder) ?? 0) + amount;
    if (held === 0) this.#held.delete(holder);
    else this.#held.set(holder, held);
    this.used += amount;
  }

  /** @returns how much more a holder has than is left */
  excess(holder: Holder): number {
    const left = this.size - this.used;
    return (this.#held.get(holder) ?? 0) - left;
  }
}

/** What callers wait for: one of each in turn. They share its size. */
export class FairQueue<Item> {
  readonly #queues = new Map<Holder, Item[]>();
  readonly #budget: SharedBudget;

  constructor(size: number) {
    this.#budget = new SharedBudget(size);
  }

  get length(): number {
    return this.#budget.used;
  }

  /** The first item of each caller. */
  get heads(): Item[] {
    const queues = [...this.#queues.values()];
    return queues.map(([first]) => first as Item);
  }

  headOf(holder: Holder): Item | undefined {
    return this.#queues.get(holder)?.[0];
  }

  /** @returns false when the caller has too many */
  push(holder: Holder, item: Item): boolean {
    if (!this.#budget.take(holder)) return false;
    const queue = this.#queues.get(holder);
    if (queue) queue.push(item);
    else this.#queues.set(holder, [item]);
    return true;
  }

  /** Takes the next items. */
  take(count: number): Item[] {
    const taken: Item[] = [];
    // A map yields what is set meanwhile, last.
    for (const [holder, queue] of this.#queues) {
      if (taken.length === count) break;
      taken.push(queue.shift() as Item);
      this.#budget.add(holder, -1);
      this.#queues.delete(holder);
      if (queue.length > 0) this.#queues.set(holder, queue);
    }
    return taken;
  }

  /** Removes the items for which `keeps` is false. */
  filter(keeps: (item: Item) => boolean) {
    for (const [holder, queue] of this.#queues) {
      const kept = queue.filter(keeps);
      this.#budget.add(holder, kept.length - queue.length);
      if (kept.length > 0) this.#queues.set(holder, kept);
      else this.#queues.delete(holder);
    }
  }
}
