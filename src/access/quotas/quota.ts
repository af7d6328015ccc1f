import type { RateLimiterRes } from 'rate-limiter-flexible';
import { StoreError } from '../../errors.ts';
import { type Counting, inMemory, type Limiter, secondsLeft, windowSeconds } from './limiter.ts';

/** The remaining quota of a key. */
export interface QuotaState {
  limit: number;
  remaining: number;
  /** Seconds until the quota is full again. */
  reset: number;
}

/** Returns unused units, or charges more if negative. @returns the remaining quota, if it has changed */
export type Settle = (unused: number) => Promise<QuotaState | undefined>;

/**
 * Limits the units that a key may spend per minute: one per operation (a REST call, a GraphQL root field) and one per item
 * that it reads or writes. So aliases and large pages bring no advantage.
 */
export class Quota {
  readonly #limit: number;
  readonly #limiter: Limiter;
  /** The units reserved by operations in progress in this process, by key. */
  readonly #taken = new Map<number, number>();

  /**
   * @param perMinute units per key
   * @param counting Redis counts for all nodes; otherwise each node counts for all its workers
   */
  constructor(perMinute: number, counting: Counting = inMemory) {
    this.#limit = perMinute;
    this.#limiter = counting.limiter({ points: perMinute, duration: windowSeconds, keyPrefix: 'animal-store:quota' });
  }

  /**
   * Charges the maximum cost of an operation. While a unit is left, one operation may overdraw the quota.
   *
   * @returns the remaining quota, and a function that returns unused units
   * @throws StoreError TOO_MANY_REQUESTS when the quota is used up, or operations in progress have reserved the rest
   */
  async take(keyId: number, units: number): Promise<{ state: QuotaState; settle: Settle }> {
    const used = await this.#limiter.penalty(keyId, units);
    const endOfWindow = performance.now() + used.msBeforeNext;
    const taken = this.#taken.get(keyId) ?? 0;
    if (used.consumedPoints - units >= this.#limit) {
      const state = await this.#giveBack(keyId, units);
      throw this.#refusal(state, used.consumedPoints - units - taken >= this.#limit);
    }
    this.#taken.set(keyId, taken + units);
    const settle = async (unused: number) => {
      const left = (this.#taken.get(keyId) ?? 0) - units;
      if (left > 0) this.#taken.set(keyId, left);
      else this.#taken.delete(keyId);
      // Units of the previous minute are not returned to this one.
      const isOver = performance.now() >= endOfWindow;
      return unused === 0 ? undefined : this.#giveBack(keyId, isOver ? 0 : unused);
    };
    return { state: this.#stateOf(used), settle };
  }

  async #giveBack(keyId: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(keyId, units);
    // The units were charged in Redis or the parent, but returned to this process.
    if (used.consumedPoints < 0) await this.#limiter.delete(keyId);
    return this.#stateOf(used);
  }

  /** @param isUsedUp false when requests in progress have reserved the rest, and may return it */
  #refusal(state: QuotaState, isUsedUp: boolean): StoreError {
    const units = `${this.#limit} units of this minute`;
    const message = isUsedUp
      ? `This key has used its ${units}.`
      : `What is left of this key's ${units} is taken by requests under way.`;
    const headers = { 'retry-after': isUsedUp ? `${state.reset}` : '1', ...rateLimitHeaders(state) };
    return new StoreError('TOO_MANY_REQUESTS', message, { headers });
  }

  #stateOf(used: RateLimiterRes): QuotaState {
    const remaining = Math.max(0, this.#limit - Math.max(0, used.consumedPoints));
    return { limit: this.#limit, remaining, reset: secondsLeft(used) };
  }
}

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). `qu` allows registered units only, and ours
 * is not registered (section 3.1.2), so a parameter with a prefix names it.
 */
export function rateLimitHeaders({ limit, remaining, reset }: QuotaState): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds};animal-store-unit="operations+animals"`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}
