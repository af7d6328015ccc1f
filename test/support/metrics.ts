import { inMemory } from '../../src/access/limits/limiter.ts';
import { loadConfig } from '../../src/config/config.ts';
import { startFeatures } from '../../src/feature.ts';
import { features } from '../../src/features.ts';
import { Telemetry } from '../../src/process/telemetry.ts';
import { Log } from '../../src/runtime/log/log.ts';
import { send } from './http.ts';
import {
  bootstrapKey,
  type Env,
  freePort,
  type ServerProcess,
  type StartOptions,
  startServer,
} from './process.ts';

/**
 * Values by series, named as in Prometheus' text format: `name{label="value"}`.
 */
export type Series = Map<string, number>;

/**
 * @throws Error for a line that violates the text format, or a series that
 *   occurs twice
 */
export function seriesIn(text: string): Series {
  const series: Series = new Map();
  for (const line of text.split('\n')) {
    if (line === '' || /^# (?:HELP|TYPE) [a-z\d_]+ ./.test(line)) continue;
    const [, name, value] =
      /^([a-z\d_]+(?:\{(?:[a-z\d_]+="(?:[^"\\]|\\.)*",?)*\})?) (\S+)$/.exec(
        line,
      ) ?? [];
    if (!name || series.has(name) || Number.isNaN(Number(value)))
      throw new Error(`Not a series of its own: ${line}`);
    series.set(name, Number(value));
  }
  return series;
}

export interface MetricDescription {
  name: string;
  type: string;
  labels: string[];
}

/** Every metric that the service creates. */
export async function allMetrics(): Promise<MetricDescription[]> {
  const server = { on: () => undefined, getConnections: () => undefined };
  const config = loadConfig({ LOG_LEVEL: 'silent' }, features);
  const parts = await startFeatures(features, {
    config,
    log: new Log(config.log).logger,
    limiters: inMemory,
  });
  const counters = parts.flatMap(({ counters = [] }) => counters);
  const created = new Map<string, MetricDescription>();
  for (const role of ['alone', 'parent'] as const) {
    const telemetry = await openTelemetry(role);
    const app = { server, counters, addHook: () => undefined } as never;
    for (const { onBuilt } of telemetry.observers) onBuilt?.(app, {} as never);
    await telemetry.close();
    const metrics = (telemetry.metrics?.registry.getMetricsAsArray() ??
      []) as object[];
    for (const { name, type, labelNames: labels } of metrics as Array<
      MetricDescription & { labelNames: string[] }
    >) {
      created.set(name, { name, type, labels });
    }
  }
  return [...created.values()];
}

/** Opens the metrics of this process, without a service. */
export function openTelemetry(
  role: 'alone' | 'parent' = 'alone',
): Promise<Telemetry> {
  const config = loadConfig({ OPERATIONS_PORT: '1' });
  return Telemetry.open({ config, output: { dropped: 7 } }, role);
}

export interface MeasuredServer extends ServerProcess {
  /** The origin of the port for operators. */
  operations: string;
  metrics(): Promise<Series>;
}

/** Starts a server with a key, and with a port for operators. */
export async function startMeasured(
  env: Env,
  options: StartOptions = {},
): Promise<MeasuredServer> {
  const port = await freePort();
  const operations = `http://127.0.0.1:${port}`;
  const server = await startServer(
    { BOOTSTRAP_API_KEY: bootstrapKey, OPERATIONS_PORT: `${port}`, ...env },
    options,
  );
  return {
    ...server,
    operations,
    metrics: async () =>
      seriesIn((await send(operations, { path: '/metrics' })).text),
  };
}
