import type { FastifyInstance, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import type { TObject } from 'typebox';
import {
  type Counting,
  inMemory,
  type Limiter,
  secondsLeft,
  windowSeconds,
} from '../../packages/rate-limits/src/limiter.ts';
import { StoreError } from '../errors.ts';
import { mostItems } from '../storage/input/page.ts';

/** The remaining quota of a key. */
interface QuotaState {
  limit: number;
  remaining: number;
  /** Seconds until the quota is full again. */
  reset: number;
}

/** Returns unused units, or charges more if negative. @returns the remaining quota, if it has changed */
type Settle = (unused: number) => Promise<QuotaState | undefined>;

/**
 * Limits the units that a key may spend per minute: one per operation (a REST call, a GraphQL root field) and one per item
 * that it reads or writes. So aliases and large pages bring no advantage.
 */
export class Quota {
  readonly #limiter: Limiter;
  /** The units reserved by operations in progress in this process, by key. */
  readonly #taken = new Map<number, number>();

  /**
   * @param perMinute units per key
   * @param counting Redis counts for all nodes; otherwise each node counts for all its workers
   */
  constructor(
    private readonly perMinute: number,
    counting: Counting = inMemory,
  ) {
    this.#limiter = counting.limiter({ points: perMinute, duration: windowSeconds, keyPrefix: 'animal-store:quota' });
  }

  /**
   * Charges the maximum cost of an operation. While a unit is left, one operation may overdraw the quota.
   *
   * @returns the remaining quota, and a function that returns unused units
   * @throws StoreError TOO_MANY_REQUESTS when the quota is used up, or operations in progress have reserved the rest
   */
  async take(keyId: number, units: number): Promise<{ state: QuotaState; settle: Settle }> {
    const used = await this.#limiter.penalty(keyId, units);
    const endOfWindow = performance.now() + used.msBeforeNext;
    const taken = this.#taken.get(keyId) ?? 0;
    if (used.consumedPoints - units >= this.perMinute) {
      const state = await this.#giveBack(keyId, units);
      throw this.#refusal(state, used.consumedPoints - units - taken >= this.perMinute);
    }
    this.#taken.set(keyId, taken + units);
    const settle = async (unused: number) => {
      const left = (this.#taken.get(keyId) ?? 0) - units;
      if (left > 0) this.#taken.set(keyId, left);
      else this.#taken.delete(keyId);
      // Units of the previous minute are not returned to this one.
      const isOver = performance.now() >= endOfWindow;
      return unused === 0 ? undefined : this.#giveBack(keyId, isOver ? 0 : unused);
    };
    return { state: this.#stateOf(used), settle };
  }

  async #giveBack(keyId: number, units: number): Promise<QuotaState> {
    const used = await this.#limiter.reward(keyId, units);
    // The units were charged in Redis or the parent, but returned to this process.
    if (used.consumedPoints < 0) await this.#limiter.delete(keyId);
    return this.#stateOf(used);
  }

  /** @param isUsedUp false when requests in progress have reserved the rest, and may return it */
  #refusal(state: QuotaState, isUsedUp: boolean): StoreError {
    const units = `${this.perMinute} units of this minute`;
    const message = isUsedUp
      ? `This key has used its ${units}.`
      : `What is left of this key's ${units} is taken by requests under way.`;
    const headers = { 'retry-after': isUsedUp ? `${state.reset}` : '1', ...rateLimitHeaders(state) };
    return new StoreError('TOO_MANY_REQUESTS', message, { headers });
  }

  #stateOf(used: RateLimiterRes): QuotaState {
    const remaining = Math.max(0, this.perMinute - Math.max(0, used.consumedPoints));
    return { limit: this.perMinute, remaining, reset: secondsLeft(used) };
  }
}

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). `qu` allows registered units only, and ours
 * is not registered (section 3.1.2), so a parameter with a prefix names it.
 */
function rateLimitHeaders({ limit, remaining, reset }: QuotaState): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds};animal-store-unit="operations+animals"`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}

/** Charges the operations of one request one after another, like separate requests. */
export class Meter {
  /** The quota after the last operation; undefined before the first. */
  state: QuotaState | undefined;
  /** Set when an operation was rejected. */
  refusal: StoreError | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param count the items that the request has read or written so far */
  constructor(
    private readonly quota: Quota,
    private readonly keyId: number,
    private readonly count: { readonly items: number },
  ) {}

  /**
   * Runs an operation, which costs one unit plus one per item that it reads or writes.
   *
   * @param mayCost its maximum cost, charged in advance so that concurrent operations cannot spend the same units; the
   *   unused rest is returned
   * @throws StoreError TOO_MANY_REQUESTS
   */
  run<Result>(mayCost: number, operation: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(async () => {
      const settle = await this.begin(mayCost);
      return operation().finally(settle);
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /**
   * Charges the maximum cost of an operation.
   *
   * @returns a function that returns the unused rest
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async begin(mayCost: number): Promise<() => Promise<void>> {
    const before = this.count.items;
    const settle = await this.#take(mayCost);
    return async () => {
      this.state = (await settle(mayCost - 1 - (this.count.items - before))) ?? this.state;
    };
  }

  /** Charges units directly. @throws StoreError TOO_MANY_REQUESTS */
  async take(units: number): Promise<void> {
    const settle = await this.#take(units);
    await settle(0);
  }

  async #take(units: number): Promise<Settle> {
    const { state, settle } = await this.quota.take(this.keyId, units).catch((refusal: StoreError) => {
      this.refusal = refusal;
      throw refusal;
    });
    this.state = state;
    return settle;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The meter of the request; null without a quota. */
    meter: Meter | null;
    settle: (() => Promise<void>) | null;
  }
  interface FastifyContextConfig {
    /** True for a route that costs nothing or charges its work itself. */
    isUnmetered?: boolean;
  }
}

/** Charges a REST request its maximum cost before its handler runs. */
export function quotaHooks({ config, schema }: RouteOptions): { preValidation?: preValidationHookHandler } {
  if (config?.public || config?.isUnmetered) return {};
  const isList = 'limit' in ((schema?.querystring as TObject | undefined)?.properties ?? {});
  return {
    preValidation(request, _reply, done) {
      if (!request.meter) return done();
      const { limit } = request.query as { limit?: unknown };
      request.meter.begin(isList ? 1 + mostItems(limit) : 2).then((settle) => {
        request.settle = settle;
        done();
      }, done);
    },
  };
}

/** Creates a meter per request, and reports the remaining quota on every charged response. */
export const meter = fastifyPlugin<{ quota: Quota | undefined }>(
  async (app: FastifyInstance, { quota }) => {
    app.decorateRequest('meter', null).decorateRequest('settle', null);
    if (!quota) return;
    app.addHook('onRequest', (request: FastifyRequest, _reply, done) => {
      if (request.caller) request.meter = new Meter(quota, request.caller.id, request.call);
      done();
    });
    app.addHook('onSend', async (request, reply) => {
      await request.settle?.();
      const { state, refusal } = request.meter ?? {};
      if (state) reply.headers(rateLimitHeaders(state));
      // Even if GraphQL resolved other fields, so that clients notice an exceeded quota.
      if (refusal) reply.code(refusal.status).headers(refusal.headers);
    });
  },
  { name: 'meter', dependencies: ['bearer'] },
);
