import { Redis } from 'ioredis';
import {
  type RateLimiterCompatibleAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { StoreError } from '../errors.ts';

export interface QuotaOptions {
  /** Units per key and minute. */
  perMinute: number;
  /** redis://...; shared by all nodes. Counted in memory, per node, when undefined. */
  redisUrl: string | undefined;
  /** Told when Redis cannot be used: until it can, every node counts for itself. */
  onTrouble(error: Error): void;
}

/** How much of a key's quota is left. */
export interface QuotaState {
  limit: number;
  remaining: number;
  /** Seconds until it is whole again. */
  reset: number;
}

const windowSeconds = 60;

/**
 * What a key may spend in a minute. The unit is one for every operation (a REST call, a root field of GraphQL) and one
 * for every animal that it reads or writes, on both faces alike: aliases and large pages buy nothing.
 */
export class Quota {
  readonly #limit: number;
  readonly #limiter: RateLimiterCompatibleAbstract;
  readonly #redis: Redis | undefined;

  constructor({ perMinute, redisUrl, onTrouble }: QuotaOptions) {
    this.#limit = perMinute;
    const budget = { points: perMinute, duration: windowSeconds, keyPrefix: 'animal-store:quota' };
    const local = new RateLimiterMemory(budget);
    if (!redisUrl) {
      this.#limiter = local;
      return;
    }
    this.#redis = new Redis(redisUrl, { enableOfflineQueue: false, maxRetriesPerRequest: 0, connectTimeout: 2000 });
    let isTold = false;
    this.#redis.on('ready', () => {
      isTold = false;
    });
    this.#redis.on('error', (error) => {
      if (!isTold) onTrouble(error);
      isTold = true;
    });
    this.#limiter = new RateLimiterRedis({ ...budget, storeClient: this.#redis, insuranceLimiter: local });
  }

  /** Takes the unit of an operation. @throws StoreError TOO_MANY_REQUESTS when the quota is used up */
  async begin(keyId: number): Promise<QuotaState> {
    try {
      return this.#stateOf(await this.#limiter.consume(keyId, 1));
    } catch (used) {
      if (!(used instanceof RateLimiterRes)) throw used;
      const state = this.#stateOf(used);
      throw new StoreError('TOO_MANY_REQUESTS', `This key has used its ${this.#limit} units of this minute.`, {
        headers: { 'retry-after': `${state.reset}`, ...rateLimitHeaders(state) },
      });
    }
  }

  /** Takes the units of the animals that an operation read or wrote; they may overdraw the quota. */
  async charge(keyId: number, animals: number): Promise<QuotaState> {
    return this.#stateOf(await this.#limiter.penalty(keyId, animals));
  }

  /** False when Redis is configured and cannot be used. */
  get isShared(): boolean {
    return this.#redis === undefined || this.#redis.status === 'ready';
  }

  async close(): Promise<void> {
    this.#redis?.disconnect();
  }

  #stateOf({ consumedPoints, msBeforeNext }: RateLimiterRes): QuotaState {
    const remaining = Math.max(0, this.#limit - consumedPoints);
    return { limit: this.#limit, remaining, reset: Math.max(1, Math.ceil(msBeforeNext / 1000)) };
  }
}

/** The quota of the configuration; undefined when there is none. Trouble with Redis is logged once, until it is over. */
export function createQuota(
  { quotaPerMinute, redisUrl }: { quotaPerMinute: number; redisUrl: string | undefined },
  log: { warn(fields: object, message: string): void },
): Quota | undefined {
  if (quotaPerMinute === 0) return undefined;
  return new Quota({
    perMinute: quotaPerMinute,
    redisUrl,
    onTrouble: (err) => log.warn({ err }, 'Redis cannot be used: every node counts quotas for itself'),
  });
}

/** `RateLimit-Policy` and `RateLimit` (IETF draft-ietf-httpapi-ratelimit-headers-10). */
export function rateLimitHeaders({ limit, remaining, reset }: QuotaState): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds}`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}
