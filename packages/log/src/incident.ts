const longestQuiet = 60_000;
const usualQuiet = 1000;

/** The part of a log that says what happens. */
export type EventLog = Record<
  'info' | 'warn',
  (fields: object, message: string) => void
>;

/** The lines of an incident. */
export interface IncidentLines {
  begins: string;
  ends: string;
  /** Names the member of the last line that says how often it occurred. */
  count?: string;
  /** The initial quiet time (ms). */
  shortestQuiet?: number;
}

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
  ongoing: { since: number; times: number; recoveredAt?: number } | undefined;
  #quiet = usualQuiet;
  #endedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param log gets the time (`ms`) from the first occurrence to the recovery
   *   with the last line
   */
  constructor(
    private readonly log: EventLog | undefined,
    private readonly lines: IncidentLines,
  ) {}

  /** @param fields of the first line */
  occurred(fields: object = {}) {
    clearTimeout(this.#timer);
    if (this.ongoing) {
      this.ongoing.times += 1;
      this.ongoing.recoveredAt = undefined;
      return;
    }
    const since = performance.now();
    const isBack = since - this.#endedAt < longestQuiet;
    const { begins, shortestQuiet = usualQuiet } = this.lines;
    if (isBack) this.#quiet = Math.min(2 * this.#quiet, longestQuiet);
    else this.#quiet = shortestQuiet;
    this.ongoing = { since, times: 1 };
    this.log?.warn(fields, begins);
  }

  /** Starts the quiet time. */
  recovered() {
    const current = this.ongoing;
    if (!current || current.recoveredAt !== undefined) return;
    current.recoveredAt = performance.now();
    const ms = Math.round(current.recoveredAt - current.since);
    this.#timer = setTimeout(() => {
      this.ongoing = undefined;
      this.#endedAt = performance.now();
      const { ends, count } = this.lines;
      const counted = count && { [count]: current.times };
      this.log?.info({ ms, ...counted }, ends);
    }, this.#quiet).unref();
  }
}
