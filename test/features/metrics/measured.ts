import { Registry } from '@prometheus-io/client';
import Fastify from 'fastify';
import { inMemory } from '#engine/access/limits/limiter.js';
import { loadConfig } from '#engine/config/config.js';
import { feature, startFeatures } from '#engine/feature.js';
import { metrics } from '#engine/features/metrics/index.js';
import { Log } from '#engine/runtime/log/log.js';
import { features } from '../../../src/features.ts';
import { service } from '../../../src/service.ts';
import { type Series, seriesIn } from '../../support/metrics.ts';

export interface MetricDescription {
  name: string;
  type: string;
  labels: string[];
}

const { operations } = loadConfig({ OPERATIONS_PORT: '1' });
const output = { dropped: 7 };

/** Every metric of the service. */
export async function allMetrics(): Promise<MetricDescription[]> {
  const created = new Map<string, MetricDescription>();
  const { registerMetric } = Registry.prototype;
  Registry.prototype.registerMetric = function (metric: any) {
    const { name, labelNames: labels } = metric;
    const type = metric.constructor.name.toLowerCase();
    created.set(name, { name, type, labels });
    return registerMetric.call(this, metric);
  };
  try {
    const server = { on: () => undefined, getConnections: () => undefined };
    const app = { server, addHook: () => undefined } as never;
    for (const way of ['start', 'supervise'] as const) {
      const env = {
        OPERATIONS_PORT: '1',
        LOG_LEVEL: 'silent',
        WEBHOOKS: 'true',
      };
      const config = loadConfig(env, features, service);
      const log = new Log(config.log).logger;
      const context = { config, log, limiters: inMemory };
      const parts = await startFeatures(features, context, way);
      const own = parts.find(({ name }) => name === metrics.name);
      await own?.http?.(app, {} as never);
      for (const { close } of parts) await close?.();
    }
  } finally {
    Registry.prototype.registerMetric = registerMetric;
  }
  return [...created.values()];
}

/** Measures a store of this process: give it `parts`. */
export function measuring() {
  const port = Fastify();
  const watched = feature({
    ...metrics,
    async start(given) {
      const config = { ...given.config, operations };
      const parts = await metrics.start?.({ ...given, config, output });
      parts?.operations?.(port);
      return parts;
    },
  });
  return {
    parts: features.map((one) => (one.name === metrics.name ? watched : one)),
    series: async (): Promise<Series> =>
      seriesIn((await port.inject('/metrics')).body),
  };
}
