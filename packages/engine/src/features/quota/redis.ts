import { once } from 'node:events';
import type { EventLog } from '@animal-store/log/incident';
import { Redis } from 'ioredis';
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import {
  answersWithin,
  type LimiterStore,
  withFallback,
} from '../../access/limits/limiter.ts';

/** Milliseconds. */
const reconnectPause = 500;

/**
 * Counts in Redis for all nodes, and in this process while Redis fails or
 * returns invalid counts.
 *
 * @param name of the service, with which its keys begin
 */
export function countInRedis(url: string, log: EventLog, name: string) {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2000,
    // The address of a former master leads to another one now.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    retryStrategy: () => reconnectPause,
    // A Redis that does not answer counts as unreachable, so that later
    // requests do not wait for it. The socket times out first: otherwise the
    // next command would wait on the same connection.
    socketTimeout: answersWithin,
    commandTimeout: answersWithin + 100,
  });
  /**
   * Messages logged in this outage: several, because the cause may come after a
   * timeout; at most five.
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
    // A node of a cluster goes on to refuse the keys of others.
    const isForGood = /MOVED|Hash slot not served/.test([...reasons].join());
    if (reasons.size === 0 || isForGood) return;
    log.info({}, 'Redis can be used again');
    reasons.clear();
  };
  // A replica, and a full Redis, refuse a write only.
  const prove = () => redis.set(`${name}:quota:proof`, '', 'PX', 1);
  redis.on('ready', () => prove().then(recover, fail)).on('error', fail);
  const watched = async <T>(count: () => Promise<T>) => {
    try {
      const used = await count();
      assertCounts(used);
      recover();
      return used;
    } catch (error) {
      if (reasons.size === 0) fail(error as Error);
      throw error;
    }
  };
  const limiter: LimiterStore = (budget) => {
    const shared = new RateLimiterRedis({ ...budget, storeClient: redis });
    return withFallback(budget, shared, watched);
  };
  return {
    limiter,
    /** @throws Error when it cannot be used */
    async ready() {
      await once(redis, 'ready');
      await prove();
    },
    /** False while each process counts for itself. */
    get isUp() {
      return redis.status === 'ready' && reasons.size === 0;
    },
    close: async () => redis.disconnect(),
  };
}

/** @throws Error for counts that no limiter of ours has written */
function assertCounts(used: unknown) {
  const { consumedPoints = 0, msBeforeNext = 0 } = (used ??
    {}) as Partial<RateLimiterRes>;
  const counts = [consumedPoints, msBeforeNext];
  if (counts.every(Number.isSafeInteger)) return;
  throw new Error(`Redis returned invalid counts: ${counts}`);
}
