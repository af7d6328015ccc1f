import { type RateLimiterAbstract, RateLimiterMemory } from 'rate-limiter-flexible';

/** Counts what is used, by key and window of time. */
export type Limiter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward' | 'delete'>;

export interface Budget {
  points: number;
  /** Seconds. */
  duration: number;
  /** Distinguishes the limiters that count in one place. */
  keyPrefix: string;
}

/** The place where the processes of a service count. */
export interface Counting {
  limiter(budget: Budget): Limiter;
}

/** For a process that is the service by itself. */
export const inMemory: Counting = { limiter: (budget) => new RateLimiterMemory(budget) };
