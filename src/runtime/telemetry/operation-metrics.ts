import type { GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { Count, Distribution, Family } from './instruments.ts';
import type { Metrics } from './metrics.ts';
import type { ObservedOperation, OperationObserver } from './observers.ts';
import { codeWord, other } from './words.ts';

type Face = 'rest' | 'graphql';

/** Counts operations of both APIs. */
export class OperationMetrics implements OperationObserver {
  readonly #operations: Family<Count>;
  readonly #durations: Family<Distribution>;
  readonly #quotaRefusals: Count;
  readonly #known = new Map<string, OperationSeries>();
  /** The root fields of operations, by the names that they have in the response. */
  readonly #fields = new WeakMap<ObservedOperation['fields'], Map<string, OperationSeries>>();

  constructor(metrics: Metrics) {
    this.#operations = metrics.counter('animal_store_operations_total');
    this.#durations = metrics.histogram('animal_store_operation_duration_seconds');
    this.#quotaRefusals = metrics.counter('animal_store_quota_refusals_total').with();
  }

  /** @param operation the name in the API, from a closed list */
  of(face: Face, operation: string): OperationSeries {
    const key = `${face} ${operation}`;
    let series = this.#known.get(key);
    if (!series) {
      const counts = (code: string) => this.#operations.with(face, operation, code);
      series = new OperationSeries(counts, this.#durations.with(face, operation), this.#quotaRefusals);
      this.#known.set(key, series);
    }
    return series;
  }

  /** Makes the series of all operations that there are. */
  declare(operationIds: string[], schema: GraphQLSchema): void {
    for (const operation of operationIds) this.of('rest', operation);
    for (const type of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
      for (const field of Object.keys(type?.getFields() ?? {})) this.of('graphql', field);
    }
  }

  began({ call }: ObservedOperation): void {
    call.operationBegan = performance.now();
  }

  ended({ fields, call }: ObservedOperation, errors?: readonly GraphQLFormattedError[]): void {
    const now = call.streamedAfter === undefined ? performance.now() : call.arrived + call.streamedAfter;
    call.operationBegan ??= now;
    const seconds = (now - call.operationBegan) / 1000;
    for (const [key, series] of this.#seriesOf(fields)) {
      series.ended(errors && codeFor(key, errors), seconds);
    }
  }

  /** Of a valid document: these are fields of the schema, or introspection's. */
  #seriesOf(fields: ObservedOperation['fields']): Map<string, OperationSeries> {
    const known = this.#fields.get(fields);
    if (known) return known;
    const series = new Map<string, OperationSeries>();
    for (const [key, name] of fields) series.set(key, this.of('graphql', name.startsWith('__') ? other : name));
    this.#fields.set(fields, series);
    return series;
  }
}

/** Of one operation: its counters by code, and its durations. */
export class OperationSeries {
  readonly #counts: (code: string) => Count;
  readonly #durations: Distribution;
  readonly #quotaRefusals: Count;
  readonly #good: Count;
  readonly #bad = new Map<string, Count>();

  constructor(counts: (code: string) => Count, durations: Distribution, quotaRefusals: Count) {
    this.#counts = counts;
    this.#durations = durations;
    this.#quotaRefusals = quotaRefusals;
    this.#good = counts('OK');
    // Prometheus sees no increase in a series that it sees for the first time, and these are what alerts look at.
    for (const code of ['SERVICE_UNAVAILABLE', 'INTERNAL_SERVER_ERROR']) this.#bad.set(code, counts(code));
  }

  /** @param code of its error, if it has failed */
  ended(code: unknown, seconds: number): void {
    this.#durations.observe(seconds);
    if (code === undefined) this.#good.add();
    else this.#failed(codeWord(code));
  }

  #failed(word: string): void {
    if (word === 'TOO_MANY_REQUESTS') this.#quotaRefusals.add();
    let count = this.#bad.get(word);
    if (!count) {
      count = this.#counts(word);
      this.#bad.set(word, count);
    }
    count.add();
  }
}

/** The code of the error at this field; an error without a path is about the whole operation. */
function codeFor(key: string, errors: readonly GraphQLFormattedError[]): unknown {
  return errors.find(({ path }) => path === undefined || path[0] === key)?.extensions?.code;
}
