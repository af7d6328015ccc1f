import { listedIn } from '@animal-store/graphql-limits/cost';
import type {
  FastifyInstance,
  preValidationHookHandler,
  RouteOptions,
} from 'fastify';
import type { TObject } from 'typebox';
import type { FeatureContext, Parts } from '../../feature.ts';
import { mostItems } from '../../validation/page.ts';
import { describeQuota } from './contract.ts';
import { QuotaMeter } from './meter.ts';
import { Quota } from './quota.ts';

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
