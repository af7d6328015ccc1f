import { listedIn } from '@animal-store/graphql-limits/cost';
import type {
  FastifyInstance,
  preValidationHookHandler,
  RouteOptions,
} from 'fastify';
import type { TObject } from 'typebox';
import { windowSeconds } from '../../access/limits/limiter.ts';
import type { Meter } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import type { FeatureContext, Parts } from '../../feature.ts';
import { mostItems } from '../../validation/page.ts';
import { describeQuota } from './contract.ts';
import { Quota, type QuotaState } from './quota.ts';

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
 * `qu` allows registered units only, and ours is not registered (section
 * 3.1.2), so a parameter with a prefix names it.
 */
function rateLimitHeaders({
  limit,
  remaining,
  reset,
}: QuotaState): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds};animal-store-unit="operations+animals"`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}

/**
 * Charges the operations of one request one after another, like separate
 * requests: a unit for each operation (a REST call, a GraphQL root field) and
 * one for each item that it reads or writes. So aliases and large pages bring
 * no advantage.
 */
class QuotaMeter implements Meter {
  /** The quota after the last operation; undefined before the first. */
  #state: QuotaState | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #release: (() => Promise<void>) | undefined;

  /** @param call counts the items that the request has read or written */
  constructor(
    private readonly quota: Quota,
    private readonly callerId: number,
    private readonly call: { readonly items: number },
  ) {}

  /**
   * Runs an operation, which costs one unit plus one per item that it reads or
   * writes, unless the whole request is charged.
   *
   * @param mayCost its maximum cost, charged in advance so that concurrent
   *   operations cannot spend the same units; the unused rest is returned
   * @throws StoreError TOO_MANY_REQUESTS
   */
  run<Result>(
    mayCost: number,
    operation: () => Promise<Result>,
  ): Promise<Result> {
    const isReserved = this.#release !== undefined;
    if (isReserved) return operation();
    const result = this.#turn.then(async () => {
      const release = await this.#reserveCost(mayCost);
      return operation().finally(release);
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /**
   * Charges the maximum cost of the whole request, until `release` returns the
   * unused rest.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async reserve(mayCost: number) {
    this.#release = await this.#reserveCost(mayCost);
  }

  async release(): Promise<Record<string, string>> {
    await this.#release?.();
    this.#release = undefined;
    if (!this.#state) return {};
    return rateLimitHeaders(this.#state);
  }

  /**
   * Charges units for good.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async charge(units: number) {
    const returnUnusedUnits = await this.#reserveUnits(units);
    await returnUnusedUnits(0);
  }

  /** @returns a function that settles the cost of what was read and written */
  async #reserveCost(mayCost: number): Promise<() => Promise<void>> {
    const before = this.call.items;
    const returnUnusedUnits = await this.#reserveUnits(mayCost);
    return async () => {
      const cost = 1 + this.call.items - before;
      const changed = await returnUnusedUnits(mayCost - cost);
      this.#state = changed ?? this.#state;
    };
  }

  async #reserveUnits(units: number) {
    const reservation = await this.quota.reserve(this.callerId, units);
    const { state, returnUnusedUnits, isUsedUp } = reservation;
    this.#state = state;
    if (returnUnusedUnits) return returnUnusedUnits;
    const ofMinute = `${this.quota.perMinute} units of this minute`;
    if (isUsedUp)
      throw overQuota(`This key has used its ${ofMinute}.`, state.reset);
    throw overQuota(
      `What is left of this key's ${ofMinute} is taken by requests under way.`,
      1,
    );
  }
}

function overQuota(message: string, seconds: number) {
  const headers = { 'retry-after': `${seconds}` };
  return new StoreError('TOO_MANY_REQUESTS', message, { headers });
}

/**
 * Without a quota the contract and the metric are still declared.
 *
 * @param perMinute units of a key; 0 for no quota
 * @param url of Redis, if any
 */
export async function startQuota(
  perMinute: number,
  url: string | undefined,
  { limiters, log }: Pick<FeatureContext, 'limiters' | 'log'>,
): Promise<Parts> {
  const isOn = perMinute > 0;
  const counter = isOn && url ? await import('./redis.ts') : undefined;
  const redis = counter?.countInRedis(`${url}`, log);
  const quota = new Quota(perMinute, redis?.limiter ?? limiters);
  return {
    http(app) {
      describeQuota(app);
      if (isOn) meterRequests(app, quota);
    },
    ...(redis && { dependencies: { redis }, close: redis.close }),
    metrics: [
      {
        name: 'animal_store_quota_refusals_total',
        help: 'Operations of keys over their quota.',
        read: () => quota.refused,
      },
    ],
  };
}

/**
 * Creates a meter per request, and reports the remaining quota on every charged
 * response.
 */
function meterRequests(app: FastifyInstance, quota: Quota) {
  app.exposedHeaders.push('RateLimit', 'RateLimit-Policy');
  app.addHook('onRequest', ({ call }, _reply, done) => {
    if (call.caller) call.meter = new QuotaMeter(quota, call.caller.id, call);
    done();
  });
  app.addHook('onRoute', reserveForRoute);
  app.addHook('onSend', async ({ call: { meter } }, reply) => {
    if (meter) reply.headers(await meter.release());
  });
}

/**
 * Reserves the maximum cost of a REST request before its handler runs, after
 * every check that needs no body.
 */
function reserveForRoute(route: RouteOptions) {
  const { config, schema, preValidation = [] } = route;
  if (config?.public || config?.isUnmetered) return;
  const querySchema = schema?.querystring as TObject | undefined;
  const isList = querySchema?.properties.limit !== undefined;
  const reserve: preValidationHookHandler = (request, _reply, done) => {
    const { query, body, call } = request;
    const { meter } = call;
    if (!meter) return done();
    const { limit, ...filters } = query as Record<string, unknown>;
    const values = Object.values(filters).filter(Array.isArray).flat();
    const most = isList ? mostItems(limit) + values.length : 1;
    const listed = listedIn(body ?? {});
    meter.reserve(1 + most + listed).then(() => done(), done);
  };
  route.preValidation = [preValidation, reserve].flat();
}
