import { once } from 'node:events';
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

/**
 * Seconds until the window ends; at most a minute, even if the clock was set
 * back.
 */
export function secondsLeft({ msBeforeNext }: RateLimiterRes): number {
  return Math.min(windowSeconds, Math.max(1, Math.ceil(msBeforeNext / 1000)));
}

/** Counts units by key and time window. */
export type Limiter = Pick<
  RateLimiterAbstract,
  'get' | 'penalty' | 'reward' | 'delete'
>;

/** Creates limiters that share a store, in which `keyPrefix` separates them. */
export type LimiterStore = (budget: IRateLimiterOptions) => Limiter;

/** Counts in this process, for a service without workers. */
export const inMemory: LimiterStore = (budget) => new RateLimiterMemory(budget);

/** How long (ms) the parent or Redis may take to answer. */
const timeout = 500;

/**
 * Counts in the parent for all workers, and in this worker while the parent
 * does not answer.
 */
export const inParent: LimiterStore = (budget) => {
  const shared = new RateLimiterCluster({ ...budget, timeoutMs: timeout });
  return withFallback(budget, shared, async (count) =>
    process.connected ? count() : Promise.reject(),
  );
};

/**
 * Uses a shared limiter, and one of this process when it fails. @param ask
 * carries out a call of the shared one
 */
function withFallback(
  budget: IRateLimiterOptions,
  shared: Limiter,
  ask: <T>(count: () => Promise<T>) => Promise<T>,
): Limiter {
  const own = new RateLimiterMemory(budget);
  const count = <T>(work: (limiter: Limiter) => Promise<T>): Promise<T> =>
    ask(() => work(shared)).catch(() => work(own));
  return {
    get: (key) => count((limiter) => limiter.get(key)),
    penalty: (key, points) => count((limiter) => limiter.penalty(key, points)),
    reward: (key, points) => count((limiter) => limiter.reward(key, points)),
    delete: (key) => count((limiter) => limiter.delete(key)),
  };
}

type Log = Record<'info' | 'warn', (fields: object, message: string) => void>;

/**
 * Counts in Redis for all nodes, and in this process while Redis fails or
 * returns invalid counts.
 */
export async function countInRedis(url: string, log: Log) {
  // Loaded only when Redis is configured. From a CommonJS package, the bundle
  // imports only the default export dynamically.
  const { Redis } = (await import('ioredis')).default;
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2000,
    // A Redis that does not answer counts as unreachable, so that later
    // requests do not wait for it. The socket times out first: otherwise the
    // next command would wait on the same connection.
    socketTimeout: timeout,
    commandTimeout: timeout + 100,
  });
  /**
   * Of this outage, at most five: the first may be a timeout, and a later one
   * the cause.
   */
  const reasons = new Set<string>();
  const fail = (err: Error) => {
    if (reasons.has(err.message) || reasons.size === 5) return;
    reasons.add(err.message);
    log.warn(
      { err },
      'Redis cannot be used: every process counts quotas for itself',
    );
  };
  const recover = () => {
    if (reasons.size > 0) log.info({}, 'Redis can be used again');
    reasons.clear();
  };
  redis.on('ready', recover).on('error', fail);
  const limiter: LimiterStore = (budget) =>
    withFallback(
      budget,
      new RateLimiterRedis({ ...budget, storeClient: redis }),
      async (count) => {
        try {
          const used = await count();
          const { consumedPoints = 0, msBeforeNext = 0 } = (used ??
            {}) as Partial<RateLimiterRes>;
          const counts = [consumedPoints, msBeforeNext];
          if (!counts.every(Number.isSafeInteger))
            throw new Error(`Redis returned invalid counts: ${counts}`);
          recover();
          return used;
        } catch (error) {
          if (reasons.size === 0) fail(error as Error);
          throw error;
        }
      },
    );
  return {
    limiter,
    /** @throws Error when it cannot be used */
    ready: () => once(redis, 'ready'),
    /** False while each process counts for itself. */
    get isUp(): boolean {
      return redis.status === 'ready' && reasons.size === 0;
    },
    close: () => redis.disconnect(),
  };
}
