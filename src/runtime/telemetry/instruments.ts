import type { MetricDescription } from './catalogue.ts';

/** One series, or one gauge's value at the moment. */
export interface Sample {
  /** Where it is not the metric's: `_bucket`, `_sum`, `_count`. */
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
}

/** Counts. */
export class Count {
  value = 0;

  add(amount = 1): void {
    this.value += amount;
  }

  samples(_name: string, labels: Sample['labels']): Sample[] {
    return [{ labels, value: this.value }];
  }
}

/** A distribution. */
export class Distribution {
  readonly #buckets: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.length + 1);
  }

  observe(value: number): void {
    let place = 0;
    while (place < this.#buckets.length && value > (this.#buckets[place] as number)) place += 1;
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#sum += value;
  }

  samples(name: string, labels: Sample['labels']): Sample[] {
    let count = 0;
    const buckets = [...this.#buckets, '+Inf'].map((le, place) => {
      count += this.#counts[place] as number;
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

interface Series {
  samples(name: string, labels: Sample['labels']): Sample[];
}

/**
 * The series of one metric, each bound to its labels once. The library's own counters and histograms find the series by
 * its labels anew at each count, which costs half a microsecond to one and a half, and there are several in a request
 * that takes thirty; here it is an addition.
 */
export class Family<One extends Series> {
  readonly aggregator: string;
  readonly #series = new Map<string, { labels: Sample['labels']; one: One }>();

  constructor(
    readonly name: string,
    private readonly description: MetricDescription,
    private readonly create: () => One,
  ) {
    this.aggregator = description.aggregator ?? 'sum';
    if (description.labels.length === 0) this.with();
  }

  /** @param values of its labels, in their order: from a closed list, never what a client sent */
  with(...values: string[]): One {
    const key = values.join('\0');
    const known = this.#series.get(key);
    if (known) return known.one;
    const one = this.create();
    const labels = Object.fromEntries(this.description.labels.map((label, at) => [label, values[at] as string]));
    this.#series.set(key, { labels, one });
    return one;
  }

  /** As the library's registry asks for it. */
  async get() {
    const values = [...this.#series.values()].flatMap(({ labels, one }) => one.samples(this.name, { ...labels }));
    const { help, type } = this.description;
    return { name: this.name, help, type, aggregator: this.aggregator, values };
  }
}

/** A metric that is read when somebody asks. */
export class Reading {
  readonly aggregator: string;

  /** @param read values with those of the labels, in their order */
  constructor(
    readonly name: string,
    private readonly description: MetricDescription,
    private readonly read: () => Read[] | Promise<Read[]>,
  ) {
    this.aggregator = description.aggregator ?? 'sum';
  }

  async get() {
    const { help, type, labels } = this.description;
    const values = (await this.read()).map(([value, ...of]) => {
      return { value, labels: Object.fromEntries(labels.map((label, at) => [label, of[at] as string])) };
    });
    return { name: this.name, help, type, aggregator: this.aggregator, values };
  }
}

export type Read = [value: number, ...labels: string[]];
