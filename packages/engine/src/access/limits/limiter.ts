import {
  type IRateLimiterOptions,
  type RateLimiterAbstract,
  RateLimiterMemory,
  type RateLimiterRes,
} from 'rate-limiter-flexible';

/** The window of a limit per minute. */
export const windowSeconds = 60;

/**
 * Seconds until the window ends; at most a minute, even if the clock was set
 * back.
 */
export function secondsLeft({ msBeforeNext }: RateLimiterRes) {
  const seconds = Math.ceil(msBeforeNext / 1000);
  return Math.min(windowSeconds, Math.max(1, seconds));
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

/** How long (ms) a shared store may take to answer. */
export const answersWithin = 500;

/**
 * Uses a shared limiter, and one of this process while the shared one fails.
 *
 * @param ask carries out a call of the shared one
 */
export function withFallback(
  budget: IRateLimiterOptions,
  shared: Limiter,
  ask: <T>(count: () => Promise<T>) => Promise<T>,
): Limiter {
  const own = new RateLimiterMemory(budget);
  const count = async <T>(work: (limiter: Limiter) => Promise<T>) => {
    try {
      return await ask(() => work(shared));
    } catch {
      return work(own);
    }
  };
  return {
    get: (key) => count((limiter) => limiter.get(key)),
    penalty: (key, points) => count((limiter) => limiter.penalty(key, points)),
    reward: (key, points) => count((limiter) => limiter.reward(key, points)),
    delete: (key) => count((limiter) => limiter.delete(key)),
  };
}
