/** How an episode is told, once at its beginning and once at its end. */
export interface Tale {
  began(fields: object): void;
  /** @param milliseconds from the first sign of it to the first sign that it was over @param times how often it was noticed */
  ended(milliseconds: number, times: number): void;
}

const longestCalm = 60_000;

/**
 * A trouble that comes and goes, and that every request would report: it is told when it begins and when it is over.
 * What comes back within a while is the same trouble still. The while doubles each time, up to a minute, so that a
 * trouble that flaps does not flood the log.
 */
export class Episode {
  readonly #tale: Tale;
  readonly #shortestCalm: number;
  #calm: number;
  #since: number | undefined;
  #passedAt: number | undefined;
  #endedAt = Number.NEGATIVE_INFINITY;
  #times = 0;
  #end: NodeJS.Timeout | undefined;

  /** @param calm how long (ms) it must not be noticed until it is over */
  constructor(tale: Tale, calm = 1000) {
    this.#tale = tale;
    this.#shortestCalm = calm;
    this.#calm = calm;
  }

  noticed(fields: object = {}): void {
    this.#times += 1;
    this.#passedAt = undefined;
    clearTimeout(this.#end);
    if (this.#since !== undefined) return;
    this.#since = performance.now();
    const isBack = this.#since - this.#endedAt < longestCalm;
    this.#calm = isBack ? Math.min(2 * this.#calm, longestCalm) : this.#shortestCalm;
    this.#tale.began(fields);
  }

  /** A sign that it is over. */
  passed(): void {
    if (this.#since === undefined || this.#passedAt !== undefined) return;
    this.#passedAt = performance.now();
    this.#end = setTimeout(() => this.#over(), this.#calm).unref();
  }

  #over(): void {
    const [since = 0, passedAt = 0, times] = [this.#since, this.#passedAt, this.#times];
    this.#since = undefined;
    this.#passedAt = undefined;
    this.#times = 0;
    this.#endedAt = performance.now();
    this.#tale.ended(Math.round(passedAt - since), times);
  }
}
