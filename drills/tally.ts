export const refused = '503 with Retry-After';
export const unknown = '503 without Retry-After';
export const broken = 'connection broken';
export const closed = 'connection refused';

/** An acknowledged creation: what must be there for ever. */
export interface Acknowledged {
  name: string;
  origin: string;
  /** Of `performance.now()`. */
  sentAt: number;
  answeredAt: number;
}

/** What happened to the requests of a load. */
export class Tally {
  requests = 0;
  hung = 0;
  readonly acknowledged = new Map<number, Acknowledged>();
  /** Creations that were said not to have happened. */
  readonly refusedNames = new Set<string>();
  /** Answers that lack what was acknowledged before the question, or contradict it. */
  readonly stale: string[] = [];
  readonly failures = new Map<string, number>();
  /** The last one by the time of its answer. */
  latest: Acknowledged | undefined;
  readonly #idsOf = new Map<string, number[]>();

  acknowledge(id: number, creation: Acknowledged): void {
    const before = this.acknowledged.get(id);
    if (before) this.stale.push(`the id ${id} was given to ${before.name} and to ${creation.name}`);
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

  /** Any animal that was acknowledged by this process, or by any. */
  anyId(origin?: string): number | undefined {
    const origins = origin ? [origin] : [...this.#idsOf.keys()];
    const ids = this.#idsOf.get(origins[Math.floor(Math.random() * origins.length)] ?? '') ?? [];
    return ids[Math.floor(Math.random() * ids.length)];
  }

  /** When the first creation was answered that had been sent after this moment. */
  firstAfter(moment: number): number | undefined {
    const later = [...this.acknowledged.values()].filter(({ sentAt }) => sentAt > moment);
    return later.length === 0 ? undefined : Math.min(...later.map(({ answeredAt }) => answeredAt));
  }

  /** The longest time in which no creation was acknowledged, in milliseconds. */
  longestPause(): number {
    const times = [...this.acknowledged.values()].map(({ answeredAt }) => answeredAt).sort((one, other) => one - other);
    return times.reduce((longest, time, at) => Math.max(longest, time - (times[at - 1] ?? time)), 0);
  }
}
