import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { StoreError } from '../../errors.ts';
import { type Counting, inMemory, type Limiter } from '../quotas/limiter.ts';

const repeating = 10;
const windowSeconds = 60;

/**
 * Limits wrong keys per client address. This protects the database from look-ups, and the bootstrap key from guessing;
 * issued keys have 256 random bits. Over the limit only keys that were valid at their last look-up are admitted.
 */
export class FailureLimit {
  readonly #perMinute: number;
  readonly #processes: number;
  readonly #limiter: Limiter | undefined;
  /** Recently counted failures. A client repeats its wrong key on many connections at once: that is one failure. */
  readonly #counted = new LRUCache<string, true>({ max: 10_000, ttl: repeating * 1000 });
  /** The same for the connections that other workers have. */
  readonly #countedByAny: Limiter | undefined;
  readonly #networks = new Map<string, Network>();

  /** @param perMinute 0 for no limit */
  constructor(perMinute: number, { processes, limiter }: Counting = inMemory) {
    this.#perMinute = perMinute;
    this.#processes = processes;
    if (perMinute === 0) return;
    this.#limiter = limiter({ points: perMinute, duration: windowSeconds, keyPrefix: 'failures' });
    if (processes > 1) this.#countedByAny = limiter({ points: 1, duration: repeating, keyPrefix: 'failed' });
  }

  /**
   * Looks up a key that may be wrong, by its hash. At a time, as many look-ups run as may still fail; others wait. Each
   * worker has its share of them, and at least one. What the parent says of the rest may be out of date when it arrives:
   * so as many more may fail than the limit says as the shares of all workers, at most.
   *
   * @param recall what is known of it without a look-up, undefined for nothing: other requests may have looked it up
   *   meanwhile.
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async lookUp<Found>(
    address: string,
    hash: string,
    recall: () => Found | null | undefined,
    lookUp: () => Promise<Found | null>,
  ): Promise<Found | null> {
    if (!this.#limiter) return lookUp();
    const name = networkOf(address);
    const network = this.#networks.get(name) ?? { underWay: new Map(), waiting: 0, users: 0 };
    this.#networks.set(name, network);
    network.users += 1;
    try {
      for (;;) {
        const recalled = recall();
        if (recalled !== undefined) return recalled;
        const left = await this.#left(name);
        const same = network.underWay.get(hash);
        if (same) await same;
        else if (network.underWay.size >= Math.max(1, Math.floor(left / this.#processes))) await this.#oneLess(network);
        else return await this.#begin(name, network, hash, lookUp);
      }
    } finally {
      network.users -= 1;
      if (network.users === 0) this.#networks.delete(name);
    }
  }

  /** The look-up is registered synchronously, before another request can check for it. */
  #begin<Found>(
    name: string,
    network: Network,
    hash: string,
    lookUp: () => Promise<Found | null>,
  ): Promise<Found | null> {
    const found = this.#counting(name, hash, lookUp);
    const end = () => void network.underWay.delete(hash);
    network.underWay.set(hash, found.then(end, end));
    return found;
  }

  /** Waits until one of the look-ups in flight ends. */
  async #oneLess(network: Network): Promise<void> {
    if (network.waiting >= this.#perMinute) throw tooMany(1000);
    network.waiting += 1;
    await Promise.race(network.underWay.values());
    network.waiting -= 1;
  }

  /** How many look-ups may still fail. @throws StoreError TOO_MANY_REQUESTS */
  async #left(network: string): Promise<number> {
    const used = await this.#limiter?.get(network);
    if (!used) return this.#perMinute;
    if (used.remainingPoints <= 0) throw tooMany(used.msBeforeNext);
    return used.remainingPoints;
  }

  async #counting<Found>(network: string, hash: string, lookUp: () => Promise<Found | null>): Promise<Found | null> {
    const found = await lookUp();
    const failure = `${network} ${hash}`;
    if (found === null && !this.#counted.has(failure)) {
      this.#counted.set(failure, true);
      if (await this.#isFirst(failure)) await this.#limiter?.penalty(network, 1);
    }
    return found;
  }

  async #isFirst(failure: string): Promise<boolean> {
    return !this.#countedByAny || (await this.#countedByAny.penalty(failure, 1)).consumedPoints === 1;
  }
}

/** The look-ups in flight of a network, and the requests that wait for them; removed with its last user. */
interface Network {
  readonly underWay: Map<string, Promise<void>>;
  waiting: number;
  users: number;
}

function tooMany(milliseconds: number): StoreError {
  // A clock that is set back does not prolong the window, only what the limiter says of it.
  const seconds = Math.min(windowSeconds, Math.max(1, Math.ceil(milliseconds / 1000)));
  return new StoreError('TOO_MANY_REQUESTS', 'Too many requests with a wrong API key came from this address.', {
    headers: { 'retry-after': `${seconds}` },
  });
}

/** A client with an IPv6 address has 2^64 of them: they count as one. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [start = '', end = ''] = address.split('::');
  const [head, tail] = [start.split(':').filter(Boolean), end.split(':').filter(Boolean)];
  const zeros = address.includes('::') ? Array(8 - head.length - tail.length).fill('0') : [];
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}
