import type { FastifyPluginAsync } from 'fastify';
import { releasedVersion } from '../config/config.ts';
import type {
  ClusterMetrics,
  Metrics,
  Reading,
} from '../features/metrics/metrics.ts';
import type { TraceOptions } from '../features/traces/traces.ts';
import type { Observers } from '../runtime/observers.ts';

export interface TelemetryOptions extends TraceOptions {
  /** `alone` serves without workers. */
  role: 'alone' | 'worker' | 'parent';
  output: { readonly dropped: number };
}

/**
 * Metrics and traces of this process. Both are off by default, and then their
 * code is not loaded.
 */
export class Telemetry {
  readonly observers: Partial<Observers>[] = [];
  /** Undefined when they are off. */
  metrics: Metrics | undefined;
  /** The reports of all workers, in the parent. */
  cluster: ClusterMetrics | undefined;
  /** `/metrics`, in Prometheus' text format, for the operations port. */
  readonly pages: FastifyPluginAsync[] = [];
  #sendLastSpans: (() => Promise<void>) | undefined;
  #endMeasurements = () => {};

  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const telemetry = new Telemetry();
    const { role, log, config } = options;
    const onUnknown = (exporter: string) =>
      log.warn({ exporter }, 'OTEL_TRACES_EXPORTER: only otlp is known here');
    if (role !== 'parent' && isTraced(process.env, onUnknown)) {
      const { traceTo } = await import('../features/traces/traces.ts');
      const traces = traceTo(options);
      telemetry.observers.push(traces.observers);
      telemetry.#sendLastSpans = traces.sendLastSpans;
    }
    if (config.operations.port > 0) await telemetry.#measure(options);
    return telemetry;
  }

  async #measure({ role, config, output }: TelemetryOptions): Promise<void> {
    const [
      { ClusterMetrics, Metrics, reportToParent },
      { measure },
      { measureProcess },
    ] = await Promise.all([
      import('../features/metrics/metrics.ts'),
      import('../features/metrics/measure.ts'),
      import('../features/metrics/process-metrics.ts'),
    ]);
    const metrics = new Metrics();
    this.metrics = metrics;
    const database = config.database.url ? 'postgres' : 'embedded';
    const { revision = '' } = config;
    const info: Reading = [
      1,
      releasedVersion(),
      revision,
      process.version,
      database,
    ];
    metrics.gauge(
      'animal_store_info',
      'Always 1.',
      () => [info],
      ['version', 'revision', 'node', 'database'],
      'max',
    );
    const help = 'Log lines that could not be written.';
    metrics.counter(
      'animal_store_log_lines_dropped_total',
      help,
      [],
      () => output.dropped,
    );
    this.#endMeasurements = measureProcess(metrics);
    if (role !== 'parent') this.observers.push(measure(metrics));
    if (role === 'worker') return reportToParent(metrics);
    const cluster = role === 'parent' ? new ClusterMetrics(metrics) : undefined;
    this.cluster = cluster;
    metrics.gauge(
      'animal_store_workers_up',
      'Processes that serve.',
      () => cluster?.up ?? 1,
    );
    const silent = 'Workers that have not reported lately.';
    if (cluster)
      metrics.gauge(
        'animal_store_workers_silent',
        silent,
        () => cluster.silent,
      );
    const text = () => cluster?.text() ?? metrics.registry.metrics();
    this.pages.push(async (app) => {
      app.get('/metrics', async (_, reply) =>
        reply.type(metrics.registry.contentType).send(await text()),
      );
    });
  }

  async close(): Promise<void> {
    this.#endMeasurements();
    await this.#sendLastSpans?.();
  }
}

/**
 * Whether OpenTelemetry's standard variables name an OTLP endpoint or exporter.
 * Empty values count as absent.
 *
 * @param onUnknown called with the name of an exporter other than `otlp` and
 *   `none`
 */
export function isTraced(
  env: NodeJS.ProcessEnv,
  onUnknown: (exporter: string) => void,
): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter)
    return Boolean(
      env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    );
  if (exporter !== 'otlp' && exporter !== 'none') onUnknown(exporter);
  return exporter === 'otlp';
}
