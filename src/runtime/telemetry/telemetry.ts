import type { FastifyPluginAsync } from 'fastify';
import type { Logger } from 'pino';
import type { Redactor } from '../log/redact.ts';
import type { WorkerReport } from './gathering.ts';
import type { Metrics, ReportedMetric } from './metrics.ts';
import type { Observers } from './observers.ts';
import { openTracing, type Tracing } from './tracing.ts';

/** The part of a log that telemetry uses. */
export type Log = Pick<Logger, 'info' | 'warn'>;

export interface TelemetryOptions {
  /** Of this release. */
  version: string;
  /** Whether metrics are kept. */
  isMeasured: boolean;
  /** Whether this process serves; else it is only the parent of workers. */
  serves: boolean;
  /** Of the service. */
  database: 'embedded' | 'postgres';
  /** Whether only operations run that the operator has registered. */
  hasTrustedDocuments: boolean;
  /** OpenTelemetry's variables. */
  env: NodeJS.ProcessEnv;
  log: Log;
  output: { readonly droppedInAll: number };
  /** Keeps keys out of paths. */
  redactor: Redactor;
}

/** Processes that serve, of one parent. */
interface ServingWorkers {
  readonly up: number;
  ask(milliseconds: number): Promise<WorkerReport[]>;
}

/** What watches the service in this process: metrics and traces, both off by default; then nothing of them is loaded. */
export class Telemetry {
  private constructor(
    /** What the parts of the service report to. */
    readonly observers: Observers,
    /** Of this process; undefined when they are off. */
    private readonly metrics: Metrics | undefined,
    private readonly tracing: Tracing | undefined,
    private readonly end: () => void,
  ) {}

  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const { version, isMeasured, serves, database, hasTrustedDocuments, env, log, output, redactor } = options;
    const observers: Observers = { requests: [], operations: [], databases: [] };
    const tracing = serves ? await openTracing(env, version, log) : undefined;
    if (tracing) {
      const { requestSpans, operationSpans, databaseSpans } = await import('./spans.ts');
      const { tracer, extract } = tracing;
      observers.requests.push(requestSpans(tracer, extract, redactor));
      observers.operations.push(operationSpans(tracer, hasTrustedDocuments));
      observers.databases.push(databaseSpans(tracer));
    }
    if (!isMeasured) return new Telemetry(observers, undefined, tracing, () => undefined);
    const [{ Metrics }, { measure }, { processMetrics }] = await Promise.all([
      import('./metrics.ts'),
      import('./measuring.ts'),
      import('./process-metrics.ts'),
    ]);
    const metrics = new Metrics();
    metrics.reading('animal_store_info', () => [[1, version, process.version, database]]);
    metrics.reading('animal_store_log_lines_dropped_total', () => [[output.droppedInAll]]);
    const end = processMetrics(metrics);
    if (serves) measure(metrics, observers);
    return new Telemetry(observers, metrics, tracing, end);
  }

  /** The metrics of this process as data, for its parent. */
  async report(): Promise<ReportedMetric[] | undefined> {
    return this.metrics?.report();
  }

  /**
   * What there is to see on the port for operators.
   *
   * @param workersNow of a parent: its workers, once there are any
   */
  async pages(workersNow?: () => ServingWorkers | undefined): Promise<FastifyPluginAsync[]> {
    const { metrics } = this;
    if (!metrics) return [];
    const [{ Gathering }, { metricsPage }] = await Promise.all([import('./gathering.ts'), import('./metrics-page.ts')]);
    metrics.reading('animal_store_workers_up', () => [[workersNow ? (workersNow()?.up ?? 0) : 1]]);
    if (!workersNow) return [metricsPage(() => metrics.text())];
    const gathering = new Gathering(metrics, async (milliseconds) => (await workersNow()?.ask(milliseconds)) ?? []);
    return [metricsPage(() => gathering.text())];
  }

  /** How long (ms) the end may take: the last spans have to be sent. */
  get lastSpans(): number {
    return this.tracing ? 1500 : 0;
  }

  async close(): Promise<void> {
    this.end();
    await this.tracing?.close(this.lastSpans);
  }
}
