import {
  type Limiter,
  type LimiterStore,
  secondsLeft,
  windowSeconds,
} from './limiter.ts';
import { networkOf } from './network.ts';

/** How long (s) a repeated attempt is not counted again. */
const repetition = 10;

/**
 * Limits failed attempts, such as wrong keys, per client network and minute.
 * Attempts in progress when the limit is reached still finish.
 */
export class FailureLimit {
  readonly #failures: Limiter;
  /**
   * Counts an attempt that a client repeats on many connections, and thus on
   * several workers, only once.
   */
  readonly #counted: Limiter;

  constructor(perMinute: number, limiters: LimiterStore) {
    this.#failures = limiters({
      points: perMinute,
      duration: windowSeconds,
      keyPrefix: 'failures',
    });
    this.#counted = limiters({
      points: 1,
      duration: repetition,
      keyPrefix: 'counted-failures',
    });
  }

  /** @returns 0 when the address may try now */
  async secondsToWait(address: string) {
    const used = await this.#failures.get(networkOf(address));
    if (!used || used.remainingPoints > 0) return 0;
    return secondsLeft(used);
  }

  /** @param attempt what was tried, for example the hash of a key */
  async count(address: string, attempt: string) {
    const network = networkOf(address);
    const { consumedPoints } = await this.#counted.penalty(
      `${network} ${attempt}`,
      1,
    );
    if (consumedPoints === 1) await this.#failures.penalty(network, 1);
  }
}
