const longestQuiet = 60_000;

/**
 * Logs a recurring fault once when it starts and once when it ends, instead of
 * once per request. An incident ends after a quiet time, which doubles each
 * time the fault returns within a minute, so that a flapping fault does not
 * flood the log.
 */
export class Incident {
  /**
   * Undefined while nothing is wrong: then a hot path need not call
   * `recovered`.
   */
  ongoing:
    | { since: number; times: number; recoveredAt?: number | undefined }
    | undefined;
  #quiet: number;
  #endedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param callbacks the end gets the time (ms) from the first occurrence to
   *   the recovery, and how often it occurred
   * @param shortestQuiet the initial quiet time (ms)
   */
  constructor(
    private readonly callbacks: {
      onStart(fields: object): void;
      onEnd(milliseconds: number, times: number): void;
    },
    private readonly shortestQuiet = 1000,
  ) {
    this.#quiet = shortestQuiet;
  }

  occurred(fields: object = {}) {
    clearTimeout(this.#timer);
    if (this.ongoing) {
      this.ongoing.times += 1;
      this.ongoing.recoveredAt = undefined;
      return;
    }
    const since = performance.now();
    const isBack = since - this.#endedAt < longestQuiet;
    if (isBack) this.#quiet = Math.min(2 * this.#quiet, longestQuiet);
    else this.#quiet = this.shortestQuiet;
    this.ongoing = { since, times: 1 };
    this.callbacks.onStart(fields);
  }

  /** Starts the quiet time. */
  recovered() {
    const current = this.ongoing;
    if (!current || current.recoveredAt !== undefined) return;
    current.recoveredAt = performance.now();
    const milliseconds = Math.round(current.recoveredAt - current.since);
    this.#timer = setTimeout(() => {
      this.ongoing = undefined;
      this.#endedAt = performance.now();
      this.callbacks.onEnd(milliseconds, current.times);
    }, this.#quiet).unref();
  }
}
