import { listedIn, type Values } from '@animal-store/graphql-limits/cost';
import type {
  FastifyInstance,
  FastifyRequest,
  preValidationHookHandler,
  RouteOptions,
} from 'fastify';
import type { TObject } from 'typebox';
import type { FeatureContext, Parts } from '../../feature.ts';
import { mostFor } from '../../validation/page.ts';
import type { MemberSchema } from '../../validation/rules.ts';
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
  { config, limiters, log }: Omit<FeatureContext, 'values'>,
): Promise<Parts> {
  const isOn = perMinute > 0;
  const isShared = isOn && Boolean(url);
  const counter = isShared ? await import('./redis.ts') : undefined;
  const redis = counter?.countInRedis(`${url}`, log, config.name);
  const quota = new Quota(perMinute, redis?.limiter ?? limiters, config);
  const parts: Parts = {
    http(app) {
      describeQuota(app);
      if (isOn) meterRequests(app, quota);
    },
    metrics: [
      {
        name: 'service_quota_refusals_total',
        help: 'Operations of keys over their quota.',
        read: () => quota.refused,
      },
    ],
  };
  if (!redis) return parts;
  const { close } = redis;
  const dependencies = { redis };
  return { ...parts, dependencies, close };
}

/**
 * Creates a meter per request, and reports the remaining quota on every charged
 * response.
 */
function meterRequests(app: FastifyInstance, quota: Quota) {
  app.exposedHeaders.push('RateLimit', 'RateLimit-Policy');
  app.addHook('onRequest', ({ call }, _reply, done) => {
    const { caller } = call;
    if (caller) call.meter = new QuotaMeter(quota, caller.id, call);
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
  const isFree = config?.public || config?.isUnmetered;
  if (isFree) return;
  const querySchema = schema?.querystring as TObject | undefined;
  const limit = querySchema?.properties.limit as MemberSchema | undefined;
  const reserve: preValidationHookHandler = (request, _reply, done) => {
    const { meter } = request.call;
    if (!meter) return done();
    const most = mostUnits(request, limit);
    meter.reserve(most).then(() => done(), done);
  };
  route.preValidation = [preValidation, reserve].flat();
}

/** One for the operation, those of what it reads, and those of what it writes. */
function mostUnits(
  { query, body }: FastifyRequest,
  limitSchema: MemberSchema | undefined,
) {
  const operation = 1;
  const written = listedIn(body ?? {});
  if (!limitSchema) return operation + 1 + written;
  const { limit, ...filters } = query as Values;
  const lists = Object.values(filters).filter(Array.isArray);
  const values = lists.flat();
  const read = mostFor(limit, limitSchema.maximum) + values.length;
  return operation + read + written;
}
