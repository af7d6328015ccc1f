import { kind, whole } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

const redisUrl = kind('redis:// or rediss:// address', (text) => {
  const protocol = URL.parse(text)?.protocol ?? '';
  if (/^rediss?:$/.test(protocol)) return text;
  throw new Error('must be a redis:// or rediss:// address');
});

/**
 * Limits the units that a key may use in a minute, in this service or, by
 * Redis, in all of its nodes.
 */
export const quota = feature({
  name: 'quota',
  variables: {
    QUOTA_PER_MINUTE: whole(0, 1_000_000_000)(
      0,
      'Units of a key: one per operation and item; 0: no quota (decisions.md).',
    ),
    REDIS_URL: redisUrl(
      undefined,
      'Redis, in which several nodes share QUOTA_PER_MINUTE (operate.md).',
    ),
  },
  checks({ values: { REDIS_URL: url } }, { options }) {
    if (!url) return [];
    const remedy =
      'start Redis, or correct REDIS_URL; until then every process counts quotas for itself';
    const run = async () => {
      const { countInRedis } = await import('./redis.ts');
      const log = { info() {}, warn() {} };
      const redis = countInRedis(url, log, options.name);
      await redis.ready().finally(redis.close);
      return 'usable';
    };
    return [{ name: 'redis', remedy, state: 'warning', run }];
  },
  async start({ values, ...context }) {
    const { startQuota } = await import('./start.ts');
    const { QUOTA_PER_MINUTE: perMinute, REDIS_URL: url } = values;
    return startQuota(perMinute, url, context);
  },
});
