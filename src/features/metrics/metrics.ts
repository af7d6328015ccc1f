import cluster from 'node:cluster';
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { Metric, Reading } from '../../feature.ts';

/** The metrics of a process. */
export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly registry = new Registry();
  readonly #registers = [this.registry];

  counter(
    name: string,
    help: string,
    labelNames: string[] = [],
  ): Counter<string> {
    const registers = this.#registers;
    return new Counter({ name, help, labelNames, registers });
  }

  /** @param buckets upper bounds */
  histogram(
    name: string,
    help: string,
    buckets: number[],
    labelNames: string[],
  ): Histogram<string> {
    const registers = this.#registers;
    return new Histogram({ name, help, labelNames, buckets, registers });
  }

  /** Adds metrics whose values are read at each scrape. */
  read(...metrics: readonly Metric[]): void {
    const registers = this.#registers;
    for (const { name, help, labels: labelNames = [], of, read } of metrics) {
      const aggregator = of ?? 'sum';
      const collect = () => refill(metric, aggregator, read);
      const options = { name, help, labelNames, registers, collect };
      const metric: Counter<string> | Gauge<string> = name.endsWith('_total')
        ? new Counter(options)
        : new Gauge({ ...options, aggregator });
    }
  }
}

async function refill(
  metric: Counter<string> | Gauge<string>,
  aggregator: Metric['of'],
  read: Metric['read'],
) {
  const found = await read();
  const readings: Reading[] = typeof found === 'number' ? [[found]] : found;
  metric.reset();
  for (const [value, ...labels] of readings.sort(([a], [b]) => a - b)) {
    if (aggregator === 'max')
      (metric as Gauge<string>).labels(...labels).set(value);
    else metric.labels(...labels).inc(value);
  }
}

/** How often (ms) a worker reports. */
const reportInterval = 1000;
/** How long (ms) after its last report a worker counts as silent. */
const reportTimeout = 2500;

type MetricsReport = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** In a worker: sends its metrics to the parent every second. */
export function reportToParent({ registry }: Metrics): void {
  const send = async () => {
    const report = await registry.getMetricsAsJSON();
    if (process.connected) process.send?.({ report });
  };
  setInterval(() => void send().catch(() => undefined), reportInterval).unref();
}

/**
 * In the parent: adds up the metrics of all workers. The library's
 * `AggregatorRegistry` drops the counts of a killed worker, which Prometheus
 * takes for a counter reset, and fails the whole scrape when one worker hangs.
 * This class keeps each worker's last reported counts.
 */
export class ClusterMetrics {
  /** The last reports of running workers. */
  readonly #reports = new Map<number, { report: MetricsReport; at: number }>();
  /** The summed counts of ended workers. */
  #ended: Promise<MetricsReport> = Promise.resolve([]);

  constructor(private readonly own: Metrics) {
    const store = (id: number, report: MetricsReport) =>
      this.#reports.set(id, { report, at: performance.now() });
    cluster.on('listening', ({ id }) => store(id, []));
    cluster.on('message', ({ id }, message: { report?: MetricsReport }) => {
      if (message.report && this.#reports.has(id)) store(id, message.report);
    });
    cluster.on('exit', ({ id }) => {
      const counted = countersIn(this.#reports.get(id)?.report ?? []);
      this.#reports.delete(id);
      this.#ended = this.#ended.then((sum) =>
        Registry.aggregate([sum, counted]).getMetricsAsJSON(),
      );
    });
  }

  /** The number of workers that listen. */
  get up(): number {
    return this.#reports.size;
  }

  /** The number of workers that have not reported lately. */
  get silent(): number {
    return [...this.#reports.values()].filter(({ at }) => isSilent(at)).length;
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    const reports = [...this.#reports.values()].map(({ report, at }) =>
      isSilent(at) ? countersIn(report) : report,
    );
    const [own, ended] = await Promise.all([
      this.own.registry.getMetricsAsJSON(),
      this.#ended,
    ]);
    return Registry.aggregate([own, ...reports, ended]).metrics();
  }
}

const isSilent = (at: number) => performance.now() - at > reportTimeout;
const countersIn = (report: MetricsReport) =>
  report.filter(({ type }) => type !== 'gauge');
