import { RateLimiterMemory } from 'rate-limiter-flexible';
import { StoreError } from '../errors.ts';

/**
 * Limits wrong keys per client address. It protects the database from look-ups, not the keys, which have 256 random
 * bits: whoever is over the limit is refused unless its key is one that was looked up a moment ago.
 */
export class FailureLimit {
  readonly #limiter: RateLimiterMemory | undefined;

  /** @param perMinute 0 for no limit */
  constructor(perMinute: number) {
    this.#limiter = perMinute > 0 ? new RateLimiterMemory({ points: perMinute, duration: 60 }) : undefined;
  }

  /** @throws StoreError TOO_MANY_REQUESTS */
  async check(address: string): Promise<void> {
    const used = await this.#limiter?.get(address);
    if (!used || used.remainingPoints > 0) return;
    const seconds = Math.max(1, Math.ceil(used.msBeforeNext / 1000));
    throw new StoreError('TOO_MANY_REQUESTS', 'Too many requests with a wrong API key came from this address.', {
      headers: { 'retry-after': `${seconds}` },
    });
  }

  async count(address: string): Promise<void> {
    await this.#limiter?.penalty(address, 1);
  }
}
