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

/** Gives back unused units; takes missing ones, if negative. @returns the remaining quota, if it has changed */
export type Settle = (unused: number) => Promise<QuotaState | undefined>;

/**
 * What a key may spend in a minute: one unit for every operation (a REST call, a root field of GraphQL) and one for every
 * item that it reads or writes. Aliases and large pages gain nothing.
 */
export class Quota {
  readonly #limit: number;
  readonly #limiter: Limiter;
  /** The units taken by operations in progress in this process, by key. */
  readonly #taken = new Map<number, number>();

  /**
   * @param perMinute units per key
   * @param counting shared by all nodes when it is Redis; else each node counts, all of its workers in one place
   */
  constructor(perMinute: number, counting: Counting = inMemory) {
    this.#limit = perMinute;
    this.#limiter = counting.limiter({ points: perMinute, duration: windowSeconds, keyPrefix: 'animal-store:quota' });
  }

  /**
   * Takes the maximum cost of an operation. As long as a unit is left, an operation may overdraw the quota, once.
   *
   * @returns the remaining quota, and a function that takes back unused units
   * @throws StoreError TOO_MANY_REQUESTS when the quota is used up, or the rest is taken by operations in progress
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
      // Units taken in the previous minute are not credited to this one.
      const isOver = performance.now() >= endOfWindow;
      return unused === 0 ? undefined : this.#giveBack(keyId, isOver ? 0 : unused);
    };
    return { state: this.#stateOf(used), settle };
  }

  async #giveBack(keyId: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(keyId, units);
    // The units were taken from Redis's count or the parent's, but given back to this process's.
    if (used.consumedPoints < 0) await this.#limiter.delete(keyId);
    return this.#stateOf(used);
  }

  /** @param isUsedUp false when requests in progress have taken the rest, and may give it back */
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
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). Without a unit q counts requests. `qu`
 * takes registered units only, and none of them is ours (section 3.1.2); a parameter of one's own bears one's name.
 */
export function rateLimitHeaders({ limit, remaining, reset }: QuotaState): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds};animal-store-unit="operations+animals"`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}
