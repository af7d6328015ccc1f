import type { RateLimiterRes } from 'rate-limiter-flexible';
import {
  type Limiter,
  type LimiterStore,
  secondsLeft,
  windowSeconds,
} from '../../access/limits/limiter.ts';

/** The remaining quota of a caller. */
export interface QuotaState {
  limit: number;
  remaining: number;
  /** Seconds until the quota is full again. */
  reset: number;
}

/** Limits the units that a caller may spend per minute. */
export class Quota {
  readonly #limiter: Limiter;
  /**
   * The units reserved by operations in progress in this process, by caller.
   */
  readonly #reserved = new Map<number, number>();
  /** Number of operations refused since the start. */
  refused = 0;

  /**
   * @param perMinute units per caller
   * @param limiters where they are counted
   * @param service its name, and its items in the plural
   */
  constructor(
    readonly perMinute: number,
    limiters: LimiterStore,
    readonly service: { name: string; items: string },
  ) {
    this.#limiter = limiters({
      points: perMinute,
      duration: windowSeconds,
      keyPrefix: `${service.name}:quota`,
    });
  }

  /**
   * Reserves the maximum cost of an operation. While a unit is left, one
   * operation may overdraw the quota.
   */
  async reserve(callerId: number, units: number) {
    const used = await this.#limiter.penalty(callerId, units);
    const usedBefore = used.consumedPoints - units;
    const reserved = this.#reserved.get(callerId) ?? 0;
    if (usedBefore >= this.perMinute) {
      this.refused += 1;
      const state = await this.#giveBack(callerId, units);
      // Operations in progress may return what they have reserved.
      const isUsedUp = usedBefore - reserved >= this.perMinute;
      return { state, isUsedUp };
    }
    this.#reserved.set(callerId, reserved + units);
    const endOfWindow = performance.now() + used.msBeforeNext;
    /** @returns the remaining quota, if it has changed */
    const returnUnusedUnits = (unused: number) =>
      this.#settle(callerId, units, unused, endOfWindow);
    return { state: this.#stateOf(used), returnUnusedUnits };
  }

  /** Ends a reservation. It charges more if `unused` is negative. */
  async #settle(
    callerId: number,
    units: number,
    unused: number,
    endOfWindow: number,
  ): Promise<QuotaState | undefined> {
    const left = (this.#reserved.get(callerId) ?? 0) - units;
    if (left > 0) this.#reserved.set(callerId, left);
    else this.#reserved.delete(callerId);
    if (unused === 0) return undefined;
    const isOver = performance.now() >= endOfWindow;
    // Units of the previous minute are not returned to this one.
    return this.#giveBack(callerId, isOver ? 0 : unused);
  }

  async #giveBack(callerId: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(callerId, units);
    // Below zero when they were counted elsewhere: in Redis, which has failed
    // since, or in the minute before.
    if (used.consumedPoints < 0) await this.#limiter.delete(callerId);
    return this.#stateOf(used);
  }

  #stateOf(used: RateLimiterRes): QuotaState {
    const { perMinute: limit } = this;
    const consumed = Math.max(0, used.consumedPoints);
    const remaining = Math.max(0, limit - consumed);
    return { limit, remaining, reset: secondsLeft(used) };
  }
}
