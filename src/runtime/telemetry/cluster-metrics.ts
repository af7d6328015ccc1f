import cluster from 'node:cluster';
import { Registry } from '@prometheus-io/client';
import type { Metrics } from './metrics.ts';

/** How often (ms) a worker reports. */
const interval = 1000;
/** A worker that has not reported for so long (ms) is silent. */
const patience = 2500;

type Report = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** In a worker: sends the metrics of this process to its parent, again and again. */
export function reportToParent({ registry }: Metrics): void {
  const send = async () => {
    const report = await registry.getMetricsAsJSON();
    if (process.connected) process.send?.({ report });
  };
  setInterval(() => void send().catch(() => undefined), interval).unref();
}

/**
 * In the parent: adds the metrics of all workers. The library's `AggregatorRegistry` takes back what a killed worker has
 * counted, which Prometheus counts once more as a restart, and one worker that hangs fails its scrape. Here the counts of
 * a worker stay as it reported them last.
 */
export class ClusterMetrics {
  /** Of the workers that serve. */
  readonly #reports = new Map<number, { report: Report; at: number }>();
  /** What processes that have ended had counted, in one sum. */
  #ended: Promise<Report> = Promise.resolve([]);

  constructor(private readonly own: Metrics) {
    const keep = (id: number, report: Report) => this.#reports.set(id, { report, at: performance.now() });
    cluster.on('listening', ({ id }) => keep(id, []));
    cluster.on('message', ({ id }, message: { report?: Report }) => {
      if (message.report && this.#reports.has(id)) keep(id, message.report);
    });
    cluster.on('exit', ({ id }) => {
      const counted = countersIn(this.#reports.get(id)?.report ?? []);
      this.#reports.delete(id);
      this.#ended = this.#ended.then((sum) => Registry.aggregate([sum, counted]).getMetricsAsJSON());
    });
    const silent = () => [...this.#reports.values()].filter(({ at }) => isOld(at)).length;
    own.gauge('animal_store_workers_up', 'Processes that serve.', () => [[this.#reports.size]]);
    own.gauge('animal_store_workers_silent', 'Workers that have not reported lately.', () => [[silent()]]);
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    const reports = [...this.#reports.values()].map(({ report, at }) => (isOld(at) ? countersIn(report) : report));
    const [own, ended] = await Promise.all([this.own.registry.getMetricsAsJSON(), this.#ended]);
    return Registry.aggregate([own, ...reports, ended]).metrics();
  }
}

const isOld = (at: number) => performance.now() - at > patience;
const countersIn = (report: Report) => report.filter(({ type }) => type !== 'gauge');
