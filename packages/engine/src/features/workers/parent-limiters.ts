import { RateLimiterCluster } from 'rate-limiter-flexible';
import {
  answersWithin,
  type LimiterStore,
  withFallback,
} from '../../access/limits/limiter.ts';

/**
 * Counts in the parent for all workers, and in this worker while the parent
 * does not answer.
 */
export const inParent: LimiterStore = (budget) => {
  const shared = new RateLimiterCluster({
    ...budget,
    timeoutMs: answersWithin,
  });
  return withFallback(budget, shared, async (count) =>
    process.connected ? count() : Promise.reject(),
  );
};
