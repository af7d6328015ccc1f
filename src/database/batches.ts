import type { Call } from '../call.ts';
import {
  busy,
  failureOf,
  isDataError,
  isWorthAnotherTry,
  late,
  outcomeUnknown,
} from './postgres-errors.ts';

/**
 * Observes round trips to the database. It sees each of them, returns quickly
 * and does not throw.
 */
export interface DatabaseObserver {
  /**
   * @returns a function to call once, when the batch has an answer or has
   *   failed as a whole
   */
  sent(batch: SentBatch): (failure?: ReturnType<typeof failureOf>) => void;
  /** A read was sent to this server; only called with read nodes. */
  readOn?(node: string): void;
}

/** Low-cardinality labels for a queue. */
interface QueueName {
  /** The table. */
  readonly collection: string;
  readonly operation: string;
}

interface SentBatch extends QueueName {
  readonly size: number;
  readonly calls: readonly Call[];
}

export interface QueueState extends QueueName {
  readonly waiting: number;
  /** How long (ms) its first input has waited. */
  readonly oldest: number;
  /** Number of inputs rejected since the start because the queue was full. */
  readonly refused: number;
}

/** Runs a batch. @returns results in the order of the inputs */
export type Run<In, Out> = (inputs: In[]) => Promise<Array<Out | Error>>;

export interface BatchOptions extends QueueName {
  observers?: readonly DatabaseObserver[];
  maxBatch: number;
  /**
   * Maximum number of batches in flight, including slow ones that no longer
   * block the next.
   */
  maxInFlight: number;
  /** How long (ms) a batch in flight blocks the next one. */
  blockTime: number;
  /**
   * New inputs are rejected while `maxWaiting` inputs are pending, or the
   * oldest is older than `maxAge` (ms).
   */
  maxWaiting: number;
  maxAge: number;
  /**
   * For writes: when the deadline of an input passes while its batch is in
   * flight, its outcome is unknown.
   */
  isWrite?: boolean;
  /**
   * Whether the inputs of a failed batch are retried one by one; by default
   * when one of them may be at fault.
   */
  isRetryable?(error: unknown): boolean;
}

interface Waiting<In, Out> {
  readonly input: In;
  readonly call: Call;
  readonly since: number;
  /** Its batch has failed; it is retried alone. */
  isRetry: boolean;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

const sweepInterval = 100;

/**
 * Combines concurrent inputs into batches. An idle queue sends an input at
 * once. While a batch is in flight, the next one collects inputs. It is sent
 * when the batch in flight ends, after `blockTime`, or when `maxBatch` inputs
 * wait. An input never joins a batch already sent, so its result was read or
 * written after the input arrived.
 */
export class Batches<In, Out> {
  readonly #run: Run<In, Out>;
  readonly #options: Required<BatchOptions>;
  #waiting: Waiting<In, Out>[] = [];
  readonly #inFlight = new Set<Waiting<In, Out>[]>();
  #blocking: Waiting<In, Out>[] | undefined;
  #releaseTimer: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isConcurrent = false;
  #sweeper: NodeJS.Timeout | undefined;
  #refused = 0;

  /**
   * @param run returns results in the order of the inputs; an `Error` among
   *   them fails that input alone
   */
  constructor(run: Run<In, Out>, options: BatchOptions) {
    this.#run = run;
    const { isWrite = false } = options;
    this.#options = {
      isWrite,
      isRetryable: isWrite ? isDataError : isWorthAnotherTry,
      observers: [],
      ...options,
    };
  }

  /**
   * @throws DatabaseUnavailable when too many inputs are pending, or the
   *   deadline passes
   */
  add(input: In, call: Call): Promise<Out> {
    return new Promise((resolve, reject) => {
      if (this.isStuck) {
        this.#refused += 1;
        return reject(busy());
      }
      this.#waiting.push({
        input,
        call,
        since: performance.now(),
        isRetry: false,
        resolve,
        reject,
      });
      this.#sweeper ??= setInterval(
        () => this.#rejectLate(),
        sweepInterval,
      ).unref();
      this.#schedule();
    });
  }

  /**
   * True when new inputs are rejected because pending ones make no progress.
   */
  get isStuck(): boolean {
    const { maxWaiting, maxAge } = this.#options;
    if (this.#waiting.length === 0) return false;
    // A retried input has waited in a batch, not in this queue.
    const first = this.#waiting.find(({ isRetry }) => !isRetry);
    return (
      this.#waiting.length >= maxWaiting ||
      (first !== undefined && performance.now() - first.since > maxAge)
    );
  }

  get state(): QueueState {
    const { collection, operation } = this.#options;
    const [first] = this.#waiting;
    const oldest = first ? performance.now() - first.since : 0;
    return {
      collection,
      operation,
      waiting: this.#waiting.length,
      oldest,
      refused: this.#refused,
    };
  }

  #schedule(): void {
    const [first] = this.#waiting;
    if (!first || this.#isScheduled) return;
    // A full batch and a retried input do not wait.
    const isBlocked =
      this.#blocking !== undefined &&
      this.#waiting.length < this.#options.maxBatch &&
      !first.isRetry;
    if (isBlocked)
      this.#releaseTimer ??= setTimeout(
        () => this.#releaseNext(),
        this.#options.blockTime,
      );
    else if (this.#inFlight.size < this.#options.maxInFlight) {
      this.#isScheduled = true;
      // While inputs arrive concurrently, a batch collects all inputs of this
      // turn of the event loop.
      if (this.#isConcurrent) setImmediate(() => this.#dispatch());
      else queueMicrotask(() => this.#dispatch());
    }
  }

  /**
   * Releases the next batch, although the previous one may still be in flight.
   */
  #releaseNext(): void {
    clearTimeout(this.#releaseTimer);
    this.#releaseTimer = undefined;
    this.#blocking = undefined;
    this.#schedule();
  }

  #dispatch(): void {
    this.#isScheduled = false;
    const batch = this.#nextBatch();
    this.#isConcurrent = batch.length > 1;
    if (batch.length > 0) void this.#runBatch(batch);
    this.#schedule();
  }

  /**
   * Takes as many pending inputs as fit into one batch, and rejects those whose
   * client has disconnected.
   */
  #nextBatch(): Waiting<In, Out>[] {
    const now = performance.now();
    const batch: Waiting<In, Out>[] = [];
    while (this.#waiting.length > 0 && batch.length === 0) {
      const size = this.#waiting[0]?.isRetry ? 1 : this.#options.maxBatch;
      batch.push(
        ...this.#waiting
          .splice(0, size)
          .filter((one) => keepOrReject(one, now)),
      );
    }
    return batch;
  }

  async #runBatch(batch: Waiting<In, Out>[]): Promise<void> {
    const { collection, operation, observers } = this.#options;
    this.#inFlight.add(batch);
    this.#blocking = batch;
    const now = performance.now();
    for (const { call, since } of batch)
      call.batched(now - since, batch.length);
    const endings = observers.map((one) =>
      one.sent({
        collection,
        operation,
        size: batch.length,
        calls: batch.map(({ call }) => call),
      }),
    );
    let failure: ReturnType<typeof failureOf> | undefined;
    try {
      const outputs = await this.#run(batch.map(({ input }) => input));
      batch.forEach(({ resolve, reject }, index) => {
        const output = outputs[index] as Out | Error;
        if (output instanceof Error) reject(output);
        else resolve(output);
      });
    } catch (error) {
      if (endings.length > 0) failure = failureOf(error);
      if (batch.length > 1 && this.#options.isRetryable(error))
        this.#retryAlone(batch);
      else for (const { reject } of batch) reject(error);
    }
    for (const end of endings) end(failure);
    this.#inFlight.delete(batch);
    if (this.#blocking === batch) this.#releaseNext();
    else this.#schedule();
  }

  #retryAlone(batch: Waiting<In, Out>[]): void {
    for (const one of batch) one.isRetry = true;
    this.#waiting.unshift(...batch);
  }

  /**
   * Rejects inputs whose deadline has passed. One timer serves all, because a
   * timer per input costs as much as a query.
   */
  #rejectLate(): void {
    const now = performance.now();
    const lateInFlight = this.#options.isWrite ? outcomeUnknown : late;
    for (const batch of this.#inFlight) {
      for (const { call, reject } of batch)
        if (call.at <= now) reject(lateInFlight());
    }
    this.#waiting = this.#waiting.filter((one) => keepOrReject(one, now));
    if (this.#waiting.length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/**
 * Returns false, and rejects the input, when its deadline has passed or its
 * client has disconnected.
 */
function keepOrReject<In, Out>(
  { call, reject }: Waiting<In, Out>,
  now: number,
): boolean {
  if (call.at > now && !call.hasLeft) return true;
  reject(late());
  return false;
}
