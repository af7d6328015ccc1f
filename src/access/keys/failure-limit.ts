import { isIPv6, SocketAddress } from 'node:net';
import { StoreError } from '../../errors.ts';
import { type Counting, type Limiter, secondsLeft, windowSeconds } from '../quotas/limiter.ts';

/**
 * Limits invalid keys per client address, to save look-ups. Keys are too long to guess anyway: issued keys have 256 random
 * bits, the bootstrap key at least 32 characters. Look-ups in flight when the limit is reached still finish.
 */
export class FailureLimit {
  readonly #failures: Limiter;
  /** Counts an invalid key that a client repeats on many connections, and thus on several workers, only once. */
  readonly #counted: Limiter;

  constructor(perMinute: number, { limiter }: Counting) {
    this.#failures = limiter({ points: perMinute, duration: windowSeconds, keyPrefix: 'failures' });
    this.#counted = limiter({ points: 1, duration: 10, keyPrefix: 'counted-failures' });
  }

  /** @throws StoreError TOO_MANY_REQUESTS */
  async assertBelow(address: string): Promise<void> {
    const used = await this.#failures.get(networkOf(address));
    if (!used || used.remainingPoints > 0) return;
    throw new StoreError('TOO_MANY_REQUESTS', 'Too many requests with a wrong API key came from this address.', {
      headers: { 'retry-after': `${secondsLeft(used)}` },
    });
  }

  async count(address: string, keyHash: string): Promise<void> {
    const network = networkOf(address);
    const { consumedPoints } = await this.#counted.penalty(`${network} ${keyHash}`, 1);
    if (consumedPoints === 1) await this.#failures.penalty(network, 1);
  }
}

/** The /64 network of an IPv6 address, because a client has all its addresses; an IPv4 address itself, even if mapped. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [withoutZone = ''] = address.split('%');
  const { address: canonical } = new SocketAddress({ address: withoutZone, family: 'ipv6' });
  const mapped = /^::ffff:([\d.]+)$/.exec(canonical)?.[1];
  if (mapped) return mapped;
  const missing = 9 - canonical.split(':').length;
  return canonical
    .replace('::', `:${'0:'.repeat(missing)}`)
    .split(':')
    .slice(0, 4)
    .join(':');
}
