export const refused = '503 with Retry-After';
export const unknown = '503 without Retry-After';
export const broken = 'connection broken';
export const closed = 'connection refused';

/** An acknowledged creation. It must never be lost. */
export interface Acknowledged {
  name: string;
  origin: string;
  /** Times are on the `performance.now()` clock (ms). */
  sentAt: number;
  answeredAt: number;
}

/** Counts the results of a load's requests. */
export class Tally {
  requests = 0;
  hung = 0;
  readonly acknowledged = new Map<number, Acknowledged>();
  /** Creations refused with `Retry-After`, so not executed. */
  readonly refusedNames = new Set<string>();
  /**
   * Responses that lack or contradict a creation acknowledged before their
   * request.
   */
  readonly stale: string[] = [];
  readonly failures = new Map<string, number>();
  /** The creation that was acknowledged last. */
  latest: Acknowledged | undefined;
  readonly #idsOf = new Map<string, number[]>();

  acknowledge(id: number, creation: Acknowledged): void {
    const before = this.acknowledged.get(id);
    if (before)
      this.stale.push(
        `the id ${id} was assigned to ${before.name} and to ${creation.name}`,
      );
    this.acknowledged.set(id, creation);
    this.latest = creation;
    const ids = this.#idsOf.get(creation.origin) ?? [];
    ids.push(id);
    this.#idsOf.set(creation.origin, ids);
  }

  fail(kind: string): void {
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1);
  }

  failed(kind: string): number {
    return this.failures.get(kind) ?? 0;
  }

  /**
   * The id of a random pet that this process has acknowledged; without an
   * origin, that any process has.
   */
  randomId(origin?: string): number | undefined {
    const origins = origin ? [origin] : [...this.#idsOf.keys()];
    const ids =
      this.#idsOf.get(
        origins[Math.floor(Math.random() * origins.length)] ?? '',
      ) ?? [];
    return ids[Math.floor(Math.random() * ids.length)];
  }

  /**
   * The time of the earliest acknowledgement among the creations sent after
   * this moment.
   */
  firstAfter(moment: number): number | undefined {
    const later = [...this.acknowledged.values()].filter(
      ({ sentAt }) => sentAt > moment,
    );
    return later.length === 0
      ? undefined
      : Math.min(...later.map(({ answeredAt }) => answeredAt));
  }

  /** The longest time (ms) between two acknowledgements. */
  longestPause(): number {
    const times = [...this.acknowledged.values()]
      .map(({ answeredAt }) => answeredAt)
      .sort((one, other) => one - other);
    return times.reduce(
      (longest, time, at) => Math.max(longest, time - (times[at - 1] ?? time)),
      0,
    );
  }
}
