import type { FastifyPluginAsync } from 'fastify';
import { type Config, releasedVersion } from '../config/config.ts';
import type {
  ClusterMetrics,
  Metrics,
  Reading,
} from '../features/metrics/metrics.ts';
import type { Observers } from '../runtime/observers.ts';

interface TelemetryOptions {
  config: Config;
  output: { readonly dropped: number };
}

/** `alone` serves without workers. */
type Role = 'alone' | 'worker' | 'parent';

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
  #endMeasurements = () => {};

  static async open(options: TelemetryOptions, role: Role): Promise<Telemetry> {
    const telemetry = new Telemetry();
    if (options.config.operations.port > 0)
      await telemetry.#measure(options, role);
    return telemetry;
  }

  async #measure(
    { config, output }: TelemetryOptions,
    role: Role,
  ): Promise<void> {
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
  }
}
