import fc from 'fast-check';

/**
 * Decisions read from a tape of numbers, so that whatever is decided by them is a fast-check value: the same tape
 * decides the same, and a shorter tape, or one of smaller numbers, something simpler. After its end all is simplest.
 */
export class Choices {
  #at = 0;

  /** @param odds how rare is rare: one in so many */
  constructor(
    readonly tape: readonly number[],
    readonly odds = 12,
  ) {}

  #next(): number {
    return this.tape[this.#at++] ?? 0;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.#next() % items.length] as Item;
  }

  times<Item>(min: number, max: number, one: (index: number) => Item): Item[] {
    return Array.from({ length: min + (this.#next() % (max - min + 1)) }, (_, index) => one(index));
  }

  rarely(): boolean {
    return this.#next() % this.odds === this.odds - 1;
  }

  sometimes(): boolean {
    return this.#next() % 3 === 2;
  }

  often(): boolean {
    return this.#next() % 3 !== 0;
  }
}

export const choices = fc.array(fc.nat(9999), { maxLength: 150, size: 'max' }).map((tape) => new Choices(tape));
