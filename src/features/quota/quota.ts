import type { RateLimiterRes } from 'rate-limiter-flexible';
import {
  type Limiter,
  type LimiterStore,
  secondsLeft,
  windowSeconds,
} from '../../access/limits/limiter.ts';

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
  /** Number of operations refused since the start. */
  refused = 0;

  /**
   * @param perMinute units per client
   * @param limiters where they are counted
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
    const usedBefore = used.consumedPoints - units;
    const reserved = this.#taken.get(client) ?? 0;
    if (usedBefore >= this.perMinute) {
      this.refused += 1;
      const state = await this.#giveBack(client, units);
      // Operations in progress may return what they have reserved.
      return { state, isUsedUp: usedBefore - reserved >= this.perMinute };
    }
    this.#taken.set(client, reserved + units);
    const endOfWindow = performance.now() + used.msBeforeNext;
    /** @returns the remaining quota, if it has changed */
    const returnUnusedUnits = (unused: number) =>
      this.#settle(client, units, unused, endOfWindow);
    return { state: this.#stateOf(used), returnUnusedUnits };
  }

  /** Ends a reservation. It charges more if `unused` is negative. */
  async #settle(
    client: number,
    units: number,
    unused: number,
    endOfWindow: number,
  ): Promise<QuotaState | undefined> {
    const left = (this.#taken.get(client) ?? 0) - units;
    if (left > 0) this.#taken.set(client, left);
    else this.#taken.delete(client);
    if (unused === 0) return undefined;
    // Units of the previous minute are not returned to this one.
    const isOver = performance.now() >= endOfWindow;
    return this.#giveBack(client, isOver ? 0 : unused);
  }

  async #giveBack(client: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(client, units);
    // The units were charged in a shared store, but returned to this process.
    if (used.consumedPoints < 0) await this.#limiter.delete(client);
    return this.#stateOf(used);
  }

  #stateOf(used: RateLimiterRes): QuotaState {
    const { perMinute: limit } = this;
    const consumed = Math.max(0, used.consumedPoints);
    const remaining = Math.max(0, limit - consumed);
    return { limit, remaining, reset: secondsLeft(used) };
  }
}
