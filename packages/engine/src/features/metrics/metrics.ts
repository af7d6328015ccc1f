import cluster from 'node:cluster';
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { Metric, Reading } from '../../feature.ts';

/** The metrics of a process. */
export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly registry = new Registry();
  readonly #registers = [this.registry];

  /** @param prefix takes the place of `service_` in the names */
  constructor(private readonly prefix = 'service_') {}

  counter(name: string, help: string, labelNames: string[] = []) {
    return new Counter({
      name: this.#named(name),
      help,
      labelNames,
      registers: this.#registers,
    });
  }

  /** @param buckets upper bounds */
  histogram(
    name: string,
    help: string,
    buckets: number[],
    labelNames: string[],
  ) {
    return new Histogram({
      name: this.#named(name),
      help,
      labelNames,
      buckets,
      registers: this.#registers,
    });
  }

  #named(name: string) {
    return name.replace(/^service_/, this.prefix);
  }

  /** Adds metrics whose values are read at each scrape. */
  read(...metrics: readonly Metric[]) {
    for (const { name, help, labels = [], of = 'sum', read } of metrics) {
      const options = {
        name: this.#named(name),
        help,
        labelNames: labels,
        registers: this.#registers,
        collect: async () => refill(metric, of, await read()),
      };
      const metric: ReadMetric = name.endsWith('_total')
        ? new Counter(options)
        : new Gauge({ ...options, aggregator: of });
    }
  }
}

type ReadMetric = Counter<string> | Gauge<string>;

function refill(
  metric: ReadMetric,
  of: Metric['of'],
  found: number | Reading[],
) {
  const readings: Reading[] = typeof found === 'number' ? [[found]] : found;
  metric.reset();
  // Of those with the same labels `set` keeps the last one: the greatest.
  readings.sort(([a], [b]) => a - b);
  for (const [value, ...labels] of readings) {
    if (of === 'max' && metric instanceof Gauge)
      metric.labels(...labels).set(value);
    else metric.labels(...labels).inc(value);
  }
}

/** How often (ms) a worker reports. */
const reportInterval = 1000;
/** How long (ms) after its last report a worker counts as silent. */
const reportTimeout = 2500;

type MetricsReport = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** In a worker: sends its metrics to the parent every second. */
export function reportToParent({ registry }: Metrics) {
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
    cluster.on('listening', ({ id }) => this.#store(id, []));
    cluster.on('message', ({ id }, { report }: { report?: MetricsReport }) => {
      if (report && this.#reports.has(id)) this.#store(id, report);
    });
    cluster.on('exit', ({ id }) => {
      const last = this.#reports.get(id)?.report ?? [];
      this.#reports.delete(id);
      this.#ended = this.#ended.then((sum) => {
        const all = Registry.aggregate([sum, countersIn(last)]);
        return all.getMetricsAsJSON();
      });
    });
  }

  #store(id: number, report: MetricsReport) {
    this.#reports.set(id, { report, at: performance.now() });
  }

  /** The number of workers that listen. */
  get up() {
    return this.#reports.size;
  }

  /** The number of workers that have not reported lately. */
  get silent() {
    return [...this.#reports.values()].filter(isSilent).length;
  }

  /** In Prometheus' text format. */
  async text() {
    const own = await this.own.registry.getMetricsAsJSON();
    const reports = [own, await this.#ended];
    for (const last of this.#reports.values())
      reports.push(isSilent(last) ? countersIn(last.report) : last.report);
    return Registry.aggregate(reports).metrics();
  }
}

const isSilent = ({ at }: { at: number }) =>
  performance.now() - at > reportTimeout;
const countersIn = (report: MetricsReport) =>
  report.filter(({ type }) => type !== 'gauge');
