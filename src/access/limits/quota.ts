import type { RateLimiterRes } from 'rate-limiter-flexible';
import {
  type Limiter,
  type LimiterStore,
  secondsLeft,
  windowSeconds,
} from './limiter.ts';

/** The remaining quota of a client. */
export interface QuotaState {
  limit: number;
  remaining: number;
  /** Seconds until the quota is full again. */
  reset: number;
}

/** Limits the units that a client may spend per minute. */
export class Quota {
  readonly #limiter: Limiter;
  /**
   * The units reserved by operations in progress in this process, by client.
   */
  readonly #taken = new Map<number, number>();

  /**
   * @param perMinute units per client @param limiters where they are counted
   */
  constructor(
    readonly perMinute: number,
    limiters: LimiterStore,
  ) {
    this.#limiter = limiters({
      points: perMinute,
      duration: windowSeconds,
      keyPrefix: 'animal-store:quota',
    });
  }

  /**
   * Charges the maximum cost of an operation. While a unit is left, one
   * operation may overdraw the quota.
   */
  async take(client: number, units: number) {
    const used = await this.#limiter.penalty(client, units);
    const endOfWindow = performance.now() + used.msBeforeNext;
    const taken = this.#taken.get(client) ?? 0;
    if (used.consumedPoints - units >= this.perMinute) {
      const state = await this.#giveBack(client, units);
      // Otherwise operations in progress have reserved the rest, and may return
      // it.
      return {
        state,
        isUsedUp: used.consumedPoints - units - taken >= this.perMinute,
      };
    }
    this.#taken.set(client, taken + units);
    /**
     * Charges more if `unused` is negative. @returns the remaining quota, if it
     * has changed
     */
    const returnUnusedUnits = async (unused: number) => {
      const left = (this.#taken.get(client) ?? 0) - units;
      if (left > 0) this.#taken.set(client, left);
      else this.#taken.delete(client);
      // Units of the previous minute are not returned to this one.
      const isOver = performance.now() >= endOfWindow;
      return unused === 0
        ? undefined
        : this.#giveBack(client, isOver ? 0 : unused);
    };
    return { state: this.#stateOf(used), returnUnusedUnits };
  }

  async #giveBack(client: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(client, units);
    // The units were charged in a shared store, but returned to this process.
    if (used.consumedPoints < 0) await this.#limiter.delete(client);
    return this.#stateOf(used);
  }

  #stateOf(used: RateLimiterRes): QuotaState {
    const remaining = Math.max(
      0,
      this.perMinute - Math.max(0, used.consumedPoints),
    );
    return { limit: this.perMinute, remaining, reset: secondsLeft(used) };
  }
}
