import { type Aggregator, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

/** A value with those of the labels, in their order. */
export type Reading = [value: number, ...labels: string[]];

/**
 * All metrics of one process, each by its name in Prometheus: OpenTelemetry's stable name where there is one. Tests hold
 * `docs/observe.md`, the dashboard and the alerts in `operations/` to what is created here.
 */
export class Metrics {
  readonly registry = new Registry();
  readonly #registers = [this.registry];

  /** @param read for a counter that is kept elsewhere: called at each scrape */
  counter(name: string, help: string, labelNames: string[] = [], read?: () => Reading[]): Counter<string> {
    const collect = () => {
      if (!read) return;
      counter.reset();
      for (const [value, ...labels] of read()) counter.labels(...labels).inc(value);
    };
    const counter = new Counter<string>({ name, help, labelNames, registers: this.#registers, collect });
    return counter;
  }

  /** @param buckets their upper limits */
  histogram(name: string, help: string, buckets: number[], labelNames: string[]): Histogram<string> {
    return new Histogram<string>({ name, help, labelNames, buckets, registers: this.#registers });
  }

  /**
   * @param read is called at each scrape; of readings with the same labels the gauge is the sum, or the greatest for `max`
   * @param aggregator how the values of several processes become one
   */
  gauge(
    name: string,
    help: string,
    read: () => Reading[] | Promise<Reading[]>,
    labelNames: string[] = [],
    aggregator: Aggregator = 'sum',
  ): void {
    const collect = async () => {
      const readings = await read();
      gauge.reset();
      const add = aggregator === 'max' ? 'set' : 'inc';
      for (const [value, ...labels] of readings.sort(([a], [b]) => a - b)) gauge.labels(...labels)[add](value);
    };
    const gauge = new Gauge<string>({ name, help, labelNames, aggregator, registers: this.#registers, collect });
  }
}
