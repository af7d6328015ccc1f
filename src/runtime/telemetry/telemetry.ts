import type { FastifyPluginAsync } from 'fastify';
import type { Logger } from 'pino';
import type { Metrics } from '../../../packages/metrics/src/metrics.ts';
import { httpStatusOf } from '../../errors.ts';
import type { Redactor } from '../log/request-log.ts';
import { withTimeout } from '../with-timeout.ts';
import type { Observers } from './observers.ts';

export interface TelemetryOptions {
  /** The version of this release. */
  version: string;
  /** Whether metrics are enabled. */
  isMeasured: boolean;
  /** `alone` serves without workers. */
  role: 'alone' | 'worker' | 'parent';
  /** The kind of database. */
  database: 'embedded' | 'postgres';
  /** Whether only registered GraphQL documents may run. */
  hasTrustedDocuments: boolean;
  /** OpenTelemetry's variables. */
  env: NodeJS.ProcessEnv;
  log: Pick<Logger, 'info' | 'warn'>;
  output: { readonly dropped: number };
  /** Removes keys from paths. */
  redactor: Redactor;
}

/** How long (ms) sending the last spans may take. */
const lastSpans = 1500;

/** Metrics and traces of this process. Both are off by default, and then their code is not loaded. */
export class Telemetry {
  /** The observers to notify. */
  readonly observers: Observers = { requests: [], operations: [], databases: [] };
  /** Undefined when they are off. */
  metrics: Metrics | undefined;
  #sendLastSpans: (() => Promise<void>) | undefined;
  #endMeasurements = () => {};

  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const telemetry = new Telemetry();
    const { role, env, log, isMeasured } = options;
    if (role !== 'parent' && isTraced(env, log)) {
      const { traceTo } = await import('./traces.ts');
      telemetry.#sendLastSpans = traceTo(telemetry.observers, options);
    }
    if (isMeasured) await telemetry.#measure(options);
    return telemetry;
  }

  async #measure({ version, role, database, output }: TelemetryOptions): Promise<void> {
    const [{ Metrics }, { measure }, { measureProcess }, { reportToParent }] = await Promise.all([
      import('../../../packages/metrics/src/metrics.ts'),
      import('./measure.ts'),
      import('../../../packages/metrics/src/process-metrics.ts'),
      import('../../../packages/metrics/src/cluster-metrics.ts'),
    ]);
    const metrics = new Metrics();
    this.metrics = metrics;
    const labels = ['version', 'node', 'database'];
    metrics.gauge('animal_store_info', 'Always 1.', () => [[1, version, process.version, database]], labels, 'max');
    const help = 'Log lines that could not be written.';
    metrics.counter('animal_store_log_lines_dropped_total', help, [], () => [[output.dropped]]);
    this.#endMeasurements = measureProcess(metrics);
    if (role !== 'parent') measure(metrics, this.observers);
    if (role === 'worker') reportToParent(metrics);
  }

  /** Creates `/metrics`, in Prometheus' text format. @param isParent whether workers report to this process */
  async pages(isParent: boolean): Promise<FastifyPluginAsync[]> {
    const { metrics } = this;
    if (!metrics) return [];
    const { ClusterMetrics } = await import('../../../packages/metrics/src/cluster-metrics.ts');
    const cluster = isParent ? new ClusterMetrics(metrics) : undefined;
    metrics.gauge('animal_store_workers_up', 'Processes that serve.', () => [[cluster?.up ?? 1]]);
    const silent = 'Workers that have not reported lately.';
    if (cluster) metrics.gauge('animal_store_workers_silent', silent, () => [[cluster.silent]]);
    const text = () => cluster?.text() ?? metrics.registry.metrics();
    const page: FastifyPluginAsync = async (app) => {
      app.get('/metrics', async (_, reply) => reply.type(metrics.registry.contentType).send(await text()));
    };
    return [page];
  }

  /** How long (ms) `close` may take. */
  get closing(): number {
    return this.#sendLastSpans ? lastSpans : 0;
  }

  async close(): Promise<void> {
    this.#endMeasurements();
    if (!this.#sendLastSpans) return;
    const late = () => new Error('The collector does not answer.');
    await withTimeout(lastSpans, this.#sendLastSpans(), late).catch(() => undefined);
  }
}

/** Whether OpenTelemetry's standard variables name an OTLP endpoint or exporter. Empty values count as absent. */
export function isTraced(env: NodeJS.ProcessEnv, log: Pick<Logger, 'warn'>): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter) return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  if (exporter !== 'otlp' && exporter !== 'none') {
    log.warn({ exporter }, 'OTEL_TRACES_EXPORTER: only otlp is known here');
  }
  return exporter === 'otlp';
}

/** Replaces values outside a closed list, so that clients cannot create labels. */
export const other = 'other';

const methods = new Set(['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE']);
/** All error codes; the last are Apollo Server's own. */
const codes = new Set([
  ...Object.keys(httpStatusOf),
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'PERSISTED_QUERY_NOT_FOUND',
]);

export function methodLabel(method: string): string {
  return methods.has(method) ? method : other;
}

/** @param code undefined when there was no error */
export function codeLabel(code: unknown): string {
  if (code === undefined) return 'OK';
  return codes.has(code as string) ? (code as string) : other;
}

interface Routed {
  is404: boolean;
  routeOptions: { url?: string | undefined };
}

/** The route without the pattern of its parameter: `/v1/pets/:petId`. */
export function routeLabel({ is404, routeOptions: { url } }: Routed): string {
  return is404 || url === undefined || url === '*' ? other : url.replace(/\(.*?\)(?=\/|$)/g, '');
}
