import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { StoreError } from '../errors.ts';
import { hashSecret } from './secret.ts';

/**
 * Limits wrong keys per client address. It protects the database from look-ups, and the bootstrap key from being guessed;
 * issued keys have 256 random bits. Over the limit only those are let through whose key was good lately.
 */
export class FailureLimit {
  readonly #limiter: RateLimiterMemory | undefined;
  /** What was counted lately. A client repeats its wrong key on many connections at once: that is one failure. */
  readonly #counted = new LRUCache<string, true>({ max: 10_000, ttl: 10_000 });

  /** @param perMinute 0 for no limit */
  constructor(perMinute: number) {
    this.#limiter = perMinute > 0 ? new RateLimiterMemory({ points: perMinute, duration: 60 }) : undefined;
  }

  /** @throws StoreError TOO_MANY_REQUESTS */
  async check(address: string): Promise<void> {
    const used = await this.#limiter?.get(networkOf(address));
    if (!used || used.remainingPoints > 0) return;
    const seconds = Math.max(1, Math.ceil(used.msBeforeNext / 1000));
    throw new StoreError('TOO_MANY_REQUESTS', 'Too many requests with a wrong API key came from this address.', {
      headers: { 'retry-after': `${seconds}` },
    });
  }

  /** Counts a secret that was looked up and is nobody's, once in ten seconds. */
  async count(address: string, secret: string): Promise<void> {
    const network = networkOf(address);
    const failure = `${network} ${hashSecret(secret)}`;
    if (this.#counted.has(failure)) return;
    this.#counted.set(failure, true);
    await this.#limiter?.penalty(network, 1);
  }
}

/** Whoever has an IPv6 address has 2^64 of them: they count as one. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [start = '', end = ''] = address.split('::');
  const [head, tail] = [start.split(':').filter(Boolean), end.split(':').filter(Boolean)];
  const zeros = address.includes('::') ? Array(8 - head.length - tail.length).fill('0') : [];
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}
