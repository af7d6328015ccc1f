import { Redis } from 'ioredis';
import {
  type RateLimiterCompatibleAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  type RateLimiterRes,
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

/** Gives back what was not used; takes what was too little, if negative. @returns how much is left, if that has changed */
export type Settle = (unused: number) => Promise<QuotaState | undefined>;

const windowSeconds = 60;

/**
 * What a key may spend in a minute. The unit is one for every operation (a REST call, a root field of GraphQL) and one
 * for every animal that it reads or writes, on both faces alike: aliases and large pages buy nothing.
 */
export class Quota {
  readonly #limit: number;
  readonly #limiter: RateLimiterCompatibleAbstract;
  readonly #redis: Redis | undefined;
  /** What operations under way on this node have taken, by key. */
  readonly #taken = new Map<number, number>();

  constructor({ perMinute, redisUrl, onTrouble }: QuotaOptions) {
    this.#limit = perMinute;
    const budget = { points: perMinute, duration: windowSeconds, keyPrefix: 'animal-store:quota' };
    const local = new RateLimiterMemory(budget);
    if (!redisUrl) {
      this.#limiter = local;
      return;
    }
    this.#redis = new Redis(redisUrl, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 2000,
      // A Redis that is silent is left, as one that is gone: until it answers again nobody waits for it.
      socketTimeout: 500,
    });
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

  /**
   * Takes what an operation may cost. As long as a unit is left it may overdraw the quota, once.
   *
   * @returns how much is left, and what takes back the units that it did not use
   * @throws StoreError TOO_MANY_REQUESTS when the quota is used up, or what is left is taken by operations under way
   */
  async take(keyId: number, units: number): Promise<{ state: QuotaState; settle: Settle }> {
    const used = await this.#limiter.penalty(keyId, units);
    const endOfWindow = Date.now() + used.msBeforeNext;
    const taken = this.#taken.get(keyId) ?? 0;
    if (used.consumedPoints - units >= this.#limit) {
      const state = await this.#giveBack(keyId, units);
      throw used.consumedPoints - units - taken < this.#limit ? this.#underWay(state) : this.#usedUp(state);
    }
    this.#taken.set(keyId, taken + units);
    const settle = async (unused: number) => {
      const left = (this.#taken.get(keyId) ?? 0) - units;
      if (left > 0) this.#taken.set(keyId, left);
      else this.#taken.delete(keyId);
      // What was taken in the last minute is not credited to this one.
      const isOver = Date.now() >= endOfWindow;
      return unused === 0 ? undefined : this.#giveBack(keyId, isOver ? 0 : unused);
    };
    return { state: this.#stateOf(used), settle };
  }

  async #giveBack(keyId: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(keyId, units);
    // Taken where Redis counted, given back where this node counts for itself.
    if (used.consumedPoints < 0) await this.#limiter.delete(keyId);
    return this.#stateOf(used);
  }

  #usedUp(state: QuotaState): StoreError {
    return new StoreError('TOO_MANY_REQUESTS', `This key has used its ${this.#limit} units of this minute.`, {
      headers: { 'retry-after': `${state.reset}`, ...rateLimitHeaders(state) },
    });
  }

  #underWay(state: QuotaState): StoreError {
    const message = `What is left of this key's ${this.#limit} units of this minute is taken by requests under way.`;
    return new StoreError('TOO_MANY_REQUESTS', message, {
      headers: { 'retry-after': '1', ...rateLimitHeaders(state) },
    });
  }

  /** False when Redis is configured and cannot be used. */
  get isShared(): boolean {
    return this.#redis === undefined || this.#redis.status === 'ready';
  }

  async close(): Promise<void> {
    this.#redis?.disconnect();
  }

  #stateOf({ consumedPoints, msBeforeNext }: RateLimiterRes): QuotaState {
    const remaining = Math.max(0, this.#limit - Math.max(0, consumedPoints));
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
