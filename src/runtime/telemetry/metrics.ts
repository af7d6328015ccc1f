import { Registry } from '@prometheus-io/client';
import { catalogue, type MetricDescription, type MetricName } from './catalogue.ts';
import { Count, Distribution, Family, type Read, Reading } from './instruments.ts';

/** All metrics of one process. */
export class Metrics {
  readonly #registry = new Registry();

  counter(name: MetricName): Family<Count> {
    return this.#add(new Family(name, catalogue[name], () => new Count()));
  }

  histogram(name: MetricName): Family<Distribution> {
    const description: MetricDescription = catalogue[name];
    return this.#add(new Family(name, description, () => new Distribution(description.buckets ?? [])));
  }

  /** @param read is called when somebody asks. */
  reading(name: MetricName, read: () => Read[] | Promise<Read[]>): void {
    this.#add(new Reading(name, catalogue[name], read));
  }

  /** For another process. */
  async report(): Promise<ReportedMetric[]> {
    return (await this.#registry.getMetricsAsJSON()) as unknown as ReportedMetric[];
  }

  /** In Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  // The registry takes whatever answers `get`; its type asks for the library's own classes.
  #add<One extends { name: string; get(): Promise<object> }>(metric: One): One {
    this.#registry.registerMetric(metric as never);
    return metric;
  }
}

/** A metric as data. */
export interface ReportedMetric {
  name: string;
  type: string;
  aggregator: string;
  values: unknown[];
}

/** Of the text format. */
export const contentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** One of several processes, as each metric's `aggregator` says. */
export function together(reports: ReportedMetric[][]): Registry {
  return Registry.aggregate(reports);
}
