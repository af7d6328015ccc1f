/** A round trip this much (ms) longer than the shortest halves the window. */
const longExcess = 100;

/**
 * How many inputs may be in flight, chosen as TCP does: fewer when round trips
 * are long, more when more wait, and as at first when nothing waits. So the
 * inputs of another caller need not wait for many.
 */
export class AdaptiveWindow {
  size: number;
  /** True when more wait than the window lets through. */
  isLimiting = false;
  /**
   * The shortest round trip (ms). With the smallest window it moves towards the
   * usual one.
   */
  #shortest = Number.POSITIVE_INFINITY;

  /** @param min smaller batches make a full database slower */
  constructor(
    private readonly min: number,
    private readonly max: number,
  ) {
    this.size = min;
  }

  /** @param duration of the round trip of this many inputs (ms) */
  adapt(inputs: number, duration: number) {
    this.#shortest = Math.min(this.#shortest, duration);
    const excess = duration - this.#shortest;
    // With the minimum window, a long trip is the database's own speed.
    if (this.size === this.min) this.#shortest += excess / 64;
    const isLong = duration - this.#shortest > longExcess;
    const most = Math.min(this.max, this.#next(inputs, isLong));
    this.size = Math.max(this.min, most);
  }

  #next(inputs: number, isLong: boolean) {
    if (isLong) return Math.floor(this.size / 2);
    if (this.isLimiting) return this.size + inputs;
    return this.size - 1;
  }
}
