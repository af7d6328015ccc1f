import { isIPv6, SocketAddress } from 'node:net';
import { StoreError } from '../../errors.ts';
import { type Counting, type Limiter, secondsLeft, windowSeconds } from '../quotas/limiter.ts';

/**
 * Limits wrong keys per client address. This saves look-ups; it does not protect keys from guessing, because issued keys
 * have 256 random bits and the bootstrap key at least 32 characters. Look-ups that are in flight when the limit is
 * reached still finish.
 */
export class FailureLimit {
  readonly #failures: Limiter;
  /** A client repeats its wrong key on many connections, which several workers serve: that is one failure. */
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

/** An IPv6 client has 2^64 addresses: they count as one. An IPv4 address counts as itself, also when mapped to IPv6. */
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
