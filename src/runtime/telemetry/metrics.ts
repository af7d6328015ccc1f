import { type Aggregator, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

/** A value and its label values, in the order of the label names. */
export type Reading = [value: number, ...labels: string[]];
/** Reads the current values at each scrape. */
type Read = () => Reading[] | Promise<Reading[]>;

/** The metrics of one process. */
export class Metrics {
  readonly registry = new Registry();
  readonly #registers = [this.registry];

  counter(name: string, help: string, labelNames: string[] = [], read?: Read): Counter<string> {
    const collect = () => (read ? refill(counter, 'sum', read) : undefined);
    const counter: Counter<string> = new Counter({ name, help, labelNames, registers: this.#registers, collect });
    return counter;
  }

  /** @param buckets upper bounds */
  histogram(name: string, help: string, buckets: number[], labelNames: string[]): Histogram<string> {
    return new Histogram<string>({ name, help, labelNames, buckets, registers: this.#registers });
  }

  /** @param aggregator combines readings with the same labels, and the values of several processes */
  gauge(name: string, help: string, read: Read, labelNames: string[] = [], aggregator: Aggregator = 'sum'): void {
    const collect = () => refill(gauge, aggregator, read);
    const registers = this.#registers;
    const gauge: Gauge<string> = new Gauge({ name, help, labelNames, aggregator, registers, collect });
  }
}

async function refill(metric: Counter<string> | Gauge<string>, aggregator: Aggregator, read: Read): Promise<void> {
  const readings = await read();
  metric.reset();
  for (const [value, ...labels] of readings.sort(([a], [b]) => a - b)) {
    if (aggregator === 'max') (metric as Gauge<string>).labels(...labels).set(value);
    else metric.labels(...labels).inc(value);
  }
}
