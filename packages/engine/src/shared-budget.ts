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

  constructor(protected readonly size: number) {}

  /** @returns false when it is too much */
  take(holder: Holder, amount = 1) {
    const hasRoom = this.hasRoom(holder, amount);
    if (hasRoom) this.add(holder, amount);
    return hasRoom;
  }

  /** A first holder may take any amount. */
  hasRoom(holder: Holder, amount: number) {
    // What is taken is held, and not left.
    return this.used === 0 || this.excess(holder) + 2 * amount <= 0;
  }

  /** Counts what cannot be refused, or, below zero, what is given back. */
  add(holder: Holder, amount: number) {
    const held = this.held(holder) + amount;
    if (held === 0) this.#held.delete(holder);
    else this.#held.set(holder, held);
    this.used += amount;
  }

  held(holder: Holder) {
    return this.#held.get(holder) ?? 0;
  }

  /** @returns how much more a holder has than is left */
  excess(holder: Holder) {
    const left = this.size - this.used;
    return this.held(holder) - left;
  }
}
