import type { Redis } from 'ioredis';
import {
  type IRateLimiterOptions,
  type RateLimiterAbstract,
  RateLimiterCluster,
  RateLimiterMemory,
  RateLimiterRedis,
  type RateLimiterRes,
} from 'rate-limiter-flexible';

/** All limits are per minute. */
export const windowSeconds = 60;

/** Seconds until the window ends; at most a minute, even if the clock was set back. */
export function secondsLeft({ msBeforeNext }: RateLimiterRes): number {
  return Math.min(windowSeconds, Math.max(1, Math.ceil(msBeforeNext / 1000)));
}

/** Counts units by key and time window. */
export type Limiter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward' | 'delete'>;

/** Creates limiters that share a store. */
export interface LimiterStore {
  /** @param budget its `keyPrefix` separates limiters in one store */
  limiter(budget: IRateLimiterOptions): Limiter;
}

/** Counts in this process, for a service without workers. */
export const inMemory: LimiterStore = { limiter: (budget) => new RateLimiterMemory(budget) };

/** How long (ms) the parent or Redis may take to answer. */
const timeout = 500;

/** Counts in the parent for all workers, and in this worker while the parent does not answer. */
export const inParent: LimiterStore = {
  limiter: (budget) =>
    withFallback(budget, new RateLimiterCluster({ ...budget, timeoutMs: timeout }), () => process.connected),
};

/** Uses a shared limiter, and one of this process while the shared one fails. */
function withFallback(budget: IRateLimiterOptions, shared: Limiter, isUsable = () => true): Limiter {
  const own = new RateLimiterMemory(budget);
  const ask = <T>(work: (limiter: Limiter) => Promise<T>): Promise<T> =>
    isUsable() ? work(shared).catch(() => work(own)) : work(own);
  return {
    get: (key) => ask((limiter) => limiter.get(key)),
    penalty: (key, points) => ask((limiter) => limiter.penalty(key, points)),
    reward: (key, points) => ask((limiter) => limiter.reward(key, points)),
    delete: (key) => ask((limiter) => limiter.delete(key)),
  };
}

type Log = Record<'info' | 'warn', (fields: object, message: string) => void>;

/** Counts in Redis for all nodes, and in this process while Redis fails or returns invalid counts. */
export class CountingInRedis implements LimiterStore {
  #isFailing = false;

  private constructor(
    private readonly redis: Redis,
    private readonly log: Log,
  ) {
    redis.on('ready', () => this.#recover());
    redis.on('error', (error) => this.#fail(error));
  }

  /** Loads the client only when Redis is configured. */
  static async open(url: string, log: Log): Promise<CountingInRedis> {
    // From a CommonJS package, the bundle imports only the default export dynamically.
    const { Redis } = (await import('ioredis')).default;
    const redis = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 2000,
      // A Redis that does not answer counts as unreachable, so that no request waits for it. The socket times out
      // first: otherwise the next command would wait on the same connection.
      socketTimeout: timeout,
      commandTimeout: timeout + 100,
    });
    return new CountingInRedis(redis, log);
  }

  limiter(budget: IRateLimiterOptions): Limiter {
    const shared = new RateLimiterRedis({ ...budget, storeClient: this.redis });
    const count = (name: 'penalty' | 'reward') => async (key: string | number, points?: number) => {
      try {
        const used = await shared[name](key, points);
        const counts = [used.consumedPoints, used.msBeforeNext];
        if (!counts.every(Number.isSafeInteger)) throw new Error(`Redis returned invalid counts: ${counts}`);
        this.#recover();
        return used;
      } catch (error) {
        this.#fail(error);
        throw error;
      }
    };
    return withFallback(budget, {
      get: (key) => shared.get(key),
      penalty: count('penalty'),
      reward: count('reward'),
      delete: (key) => shared.delete(key),
    });
  }

  /** False while each node counts for itself. */
  get isShared(): boolean {
    return this.redis.status === 'ready' && !this.#isFailing;
  }

  close(): void {
    this.redis.disconnect();
  }

  #fail(err: unknown): void {
    if (!this.#isFailing) this.log.warn({ err }, 'Redis cannot be used: every process counts quotas for itself');
    this.#isFailing = true;
  }

  #recover(): void {
    if (this.#isFailing) this.log.info({}, 'Redis can be used again');
    this.#isFailing = false;
  }
}
