import type { Context, Tracer } from '@opentelemetry/api';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Redactor } from '../log/redact.ts';
import type { Metrics, Reading } from './metrics.ts';
import type { Observers } from './observers.ts';

export interface TelemetryOptions {
  /** Of this release. */
  version: string;
  /** Whether metrics are kept. */
  isMeasured: boolean;
  /** A process that serves, one of several that do, or their parent. */
  role: 'alone' | 'worker' | 'parent';
  /** Of the service. */
  database: 'embedded' | 'postgres';
  /** Whether only operations run that the operator has registered. */
  hasTrustedDocuments: boolean;
  /** OpenTelemetry's variables. */
  env: NodeJS.ProcessEnv;
  log: Pick<Logger, 'info' | 'warn'>;
  output: { readonly dropped: number };
  /** Removes keys from paths. */
  redactor: Redactor;
}

/** OpenTelemetry's SDK, as far as spans need it. */
export interface Tracing {
  tracer: Tracer;
  /** The trace that a request belongs to, by its headers. */
  extract(headers: FastifyRequest['headers']): Context;
  /** Sends the last spans, within this time (ms). */
  close(milliseconds: number): Promise<void>;
}

/** How long (ms) sending the last spans may take. */
const lastSpans = 1500;

/** Metrics and traces of this process. Both are off by default; then none of their code is loaded. */
export class Telemetry {
  /** What the parts of the service report to. */
  readonly observers: Observers = { requests: [], operations: [], databases: [] };
  #tracing: Tracing | undefined;
  /** Undefined when they are off. */
  metrics: Metrics | undefined;
  #endMeasurements = () => {};

  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const telemetry = new Telemetry();
    const { role, env, log, isMeasured } = options;
    if (role !== 'parent' && isTraced(env, log)) await telemetry.#trace(options);
    if (isMeasured) await telemetry.#measure(options);
    return telemetry;
  }

  async #trace(options: TelemetryOptions): Promise<void> {
    const [{ openTracing }, { databaseSpans, operationSpans, requestSpans }] = await Promise.all([
      import('./tracing.ts'),
      import('./spans.ts'),
    ]);
    const tracing = openTracing(options);
    this.#tracing = tracing;
    this.observers.requests.push(requestSpans(tracing, options.redactor));
    this.observers.operations.push(operationSpans(tracing, options.hasTrustedDocuments));
    this.observers.databases.push(databaseSpans(tracing));
  }

  async #measure({ version, role, database, output }: TelemetryOptions): Promise<void> {
    const [{ Metrics }, { measure }, { measureProcess }] = await Promise.all([
      import('./metrics.ts'),
      import('./measure.ts'),
      import('./process-metrics.ts'),
    ]);
    const metrics = new Metrics();
    this.metrics = metrics;
    const info = (): Reading[] => [[1, version, process.version, database]];
    metrics.gauge('animal_store_info', 'Always 1.', info, ['version', 'node', 'database'], 'max');
    const dropped = (): Reading[] => [[output.dropped]];
    metrics.counter('animal_store_log_lines_dropped_total', 'Log lines that could not be written.', [], dropped);
    this.#endMeasurements = measureProcess(metrics);
    if (role !== 'parent') measure(metrics, this.observers);
    if (role === 'worker') (await import('./cluster-metrics.ts')).reportToParent(metrics);
  }

  /** Requests for metrics of the port for operators. @param isParent whether workers are to be asked */
  async pages(isParent: boolean): Promise<FastifyPluginAsync[]> {
    const { metrics } = this;
    if (!metrics) return [];
    const { ClusterMetrics } = await import('./cluster-metrics.ts');
    const cluster = isParent ? new ClusterMetrics(metrics) : undefined;
    if (!isParent) metrics.gauge('animal_store_workers_up', 'Processes that serve.', () => [[1]]);
    return [metricsPage(metrics.registry.contentType, () => cluster?.text() ?? metrics.registry.metrics())];
  }

  /** How long (ms) `close` may take. */
  get closing(): number {
    return this.#tracing ? lastSpans : 0;
  }

  async close(): Promise<void> {
    this.#endMeasurements();
    await this.#tracing?.close(lastSpans);
  }
}

/** `/metrics`, in Prometheus' text format. Scrapes at the same time get the same: a database that hangs is asked once. */
function metricsPage(contentType: string, text: () => Promise<string>): FastifyPluginAsync {
  let current: Promise<string> | undefined;
  const textOnce = () => {
    current ??= text().finally(() => {
      current = undefined;
    });
    return current;
  };
  return async (app) => {
    app.get('/metrics', async (_request, reply) => reply.type(contentType).send(await textOnce()));
  };
}

/** Whether OpenTelemetry's standard variables name an OTLP endpoint or exporter. Empty values count as absent. */
export function isTraced(env: NodeJS.ProcessEnv, log: Pick<Logger, 'warn'>): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter) return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  const exporters = exporter.split(',').map((one) => one.trim());
  for (const unknown of exporters.filter((one) => one !== 'otlp' && one !== 'none')) {
    log.warn({ exporter: unknown }, 'OTEL_TRACES_EXPORTER: only otlp is known here');
  }
  return exporters.includes('otlp');
}
