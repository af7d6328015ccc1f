import {
  type RateLimiterAbstract,
  RateLimiterCluster,
  RateLimiterMemory,
  type RateLimiterRes,
} from 'rate-limiter-flexible';

/** Until a parent that does not answer is treated as absent (ms), as a silent Redis is. */
const patience = 500;

export interface Budget {
  points: number;
  /** Seconds. */
  duration: number;
  /** Distinguishes the limiters that count in one place. */
  keyPrefix: string;
}

type Limiter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward' | 'delete'>;

/** Counts in the parent, for all workers; while it does not answer, each worker counts for itself. */
export class CountedByParent implements Limiter {
  readonly #shared: RateLimiterCluster;
  readonly #own: RateLimiterMemory;

  constructor(budget: Budget) {
    this.#shared = new RateLimiterCluster({ ...budget, timeoutMs: patience });
    this.#own = new RateLimiterMemory(budget);
  }

  get(key: string | number): Promise<RateLimiterRes | null> {
    return this.#either((limiter) => limiter.get(key));
  }

  penalty(key: string | number, points?: number): Promise<RateLimiterRes> {
    return this.#either((limiter) => limiter.penalty(key, points));
  }

  reward(key: string | number, points?: number): Promise<RateLimiterRes> {
    return this.#either((limiter) => limiter.reward(key, points));
  }

  delete(key: string | number): Promise<boolean> {
    return this.#either((limiter) => limiter.delete(key));
  }

  #either<T>(ask: (limiter: Limiter) => Promise<T>): Promise<T> {
    if (!process.connected) return ask(this.#own);
    return ask(this.#shared).catch(() => ask(this.#own));
  }
}
