import { type Deadline, noDeadline } from '../../deadline.ts';
import type { DatabaseFailure, DatabaseObserver, QueueState } from '../../runtime/telemetry/observers.ts';
import { busy, failureOf, late } from '../database/errors.ts';

/** Carries out a batch. It may say which server has answered. @returns results in the order of the inputs */
export type Run<In, Out> = (inputs: In[], servedBy: (node: string) => void) => Promise<Array<Out | Error>>;

export interface BatchOptions {
  /** What it does, for those who watch. */
  collection: string;
  operation: string;
  observers?: readonly DatabaseObserver[];
  /** Maximum number of inputs in a batch. */
  maxBatch: number;
  /** Maximum number of batches in flight, including slow ones that no longer hold back the next. */
  maxInFlight: number;
  /** How long (ms) a batch in flight holds back the next one. */
  patience: number;
  /** New inputs are rejected when `maxWaiting` are pending, or the first has been pending for `maxAge` (ms). */
  maxWaiting: number;
  maxAge: number;
  /** Whether a batch of several inputs that failed as a whole may be retried, each input alone. */
  isRetryable(error: unknown): boolean;
  /** The error for an input whose deadline passes while its batch is in flight. Defaults to `late`. */
  tooLate?(): Error;
}

interface Waiting<In, Out> {
  readonly input: In;
  readonly deadline: Deadline;
  readonly since: number;
  /** Its batch has failed; it is retried alone. */
  isAlone: boolean;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

const sweepInterval = 100;

/**
 * Combines concurrent inputs into batches, one round trip each. While a batch is in flight, new inputs are pending and
 * leave together in the next batch; when none is in flight, an input leaves at once. An input never joins a batch
 * already sent, so its result was read or written after the input arrived.
 */
export class Batches<In, Out> {
  readonly #run: Run<In, Out>;
  readonly #options: Required<BatchOptions>;
  #waiting: Waiting<In, Out>[] = [];
  readonly #inFlight = new Set<Waiting<In, Out>[]>();
  /** The batch in flight that pending inputs wait for. */
  #holder: Waiting<In, Out>[] | undefined;
  #impatience: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isCrowded = false;
  #sweeper: NodeJS.Timeout | undefined;
  #refused = 0;

  /** @param run takes a batch and returns results in the same order; an `Error` among them fails that input alone. */
  constructor(run: Run<In, Out>, options: BatchOptions) {
    this.#run = run;
    this.#options = { tooLate: late, observers: [], ...options };
  }

  /** @throws StoreError SERVICE_UNAVAILABLE when too much is pending already, or the deadline passes */
  add(input: In, deadline: Deadline = noDeadline): Promise<Out> {
    const now = performance.now();
    return new Promise((resolve, reject) => {
      if (this.#isFull(now)) {
        this.#refused += 1;
        return reject(busy());
      }
      this.#waiting.push({ input, deadline, since: now, isAlone: false, resolve, reject });
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepInterval).unref();
      this.#schedule();
    });
  }

  /** True when new inputs are rejected because pending ones make no progress. */
  get isStuck(): boolean {
    return this.#isFull(performance.now());
  }

  get state(): QueueState {
    const { collection, operation } = this.#options;
    const [first] = this.#waiting;
    const oldest = first ? performance.now() - first.since : 0;
    return { collection, operation, waiting: this.#waiting.length, oldest, refused: this.#refused };
  }

  #isFull(now: number): boolean {
    const { maxWaiting, maxAge } = this.#options;
    if (this.#waiting.length === 0) return false;
    // A retried input has spent its time in a batch, not here.
    const first = this.#waiting.find(({ isAlone }) => !isAlone);
    return this.#waiting.length >= maxWaiting || (first !== undefined && now - first.since > maxAge);
  }

  #schedule(): void {
    const [first] = this.#waiting;
    if (!first || this.#isScheduled) return;
    // A full batch need not wait for more inputs, and a retried input never waits.
    const isHeld = this.#holder !== undefined && this.#waiting.length < this.#options.maxBatch && !first.isAlone;
    if (isHeld) this.#impatience ??= setTimeout(() => this.#letGo(), this.#options.patience);
    else if (this.#inFlight.size < this.#options.maxInFlight) {
      this.#isScheduled = true;
      // When inputs come several at a time, all of this turn of the event loop leave together; a lone one leaves at
      // once.
      if (this.#isCrowded) setImmediate(() => this.#depart());
      else queueMicrotask(() => this.#depart());
    }
  }

  /** Releases the next batch, although the previous one may still be in flight. */
  #letGo(): void {
    clearTimeout(this.#impatience);
    this.#impatience = undefined;
    this.#holder = undefined;
    this.#schedule();
  }

  #depart(): void {
    this.#isScheduled = false;
    const batch = this.#nextBatch();
    this.#isCrowded = batch.length > 1;
    if (batch.length > 0) void this.#send(batch);
    this.#schedule();
  }

  /** Takes as many pending inputs as fit into one batch, and rejects those whose client has disconnected. */
  #nextBatch(): Waiting<In, Out>[] {
    const now = performance.now();
    const batch: Waiting<In, Out>[] = [];
    while (this.#waiting.length > 0 && batch.length === 0) {
      const size = this.#waiting[0]?.isAlone ? 1 : this.#options.maxBatch;
      batch.push(...this.#waiting.splice(0, size).filter((one) => isWanted(one, now)));
    }
    return batch;
  }

  async #send(batch: Waiting<In, Out>[]): Promise<void> {
    const { collection, operation, observers } = this.#options;
    this.#inFlight.add(batch);
    this.#holder = batch;
    const now = performance.now();
    for (const { deadline, since } of batch) deadline.batched?.(now - since, batch.length);
    const ends = observers.map((one) =>
      one.sent({ collection, operation, size: batch.length, deadlines: batch.map(({ deadline }) => deadline) }),
    );
    let failure: DatabaseFailure | undefined;
    try {
      const outputs = await this.#run(
        batch.map(({ input }) => input),
        (node) => {
          for (const { deadline } of batch) deadline.servedBy?.(node);
        },
      );
      batch.forEach(({ resolve, reject }, index) => {
        const output = outputs[index] as Out | Error;
        if (output instanceof Error) reject(output);
        else resolve(output);
      });
    } catch (error) {
      if (ends.length > 0) failure = failureOf(error);
      if (batch.length > 1 && this.#options.isRetryable(error)) this.#tryAlone(batch);
      else for (const { reject } of batch) reject(error);
    }
    for (const end of ends) end(failure);
    this.#inFlight.delete(batch);
    if (this.#holder === batch) this.#letGo();
    else this.#schedule();
  }

  #tryAlone(batch: Waiting<In, Out>[]): void {
    for (const one of batch) one.isAlone = true;
    this.#waiting.unshift(...batch);
  }

  /** Rejects inputs whose deadline has passed. One timer serves all: a timer for each would cost as much as a query. */
  #sweep(): void {
    const now = performance.now();
    for (const batch of this.#inFlight) {
      for (const { deadline, reject } of batch) if (deadline.at <= now) reject(this.#options.tooLate());
    }
    this.#waiting = this.#waiting.filter((one) => isWanted(one, now));
    if (this.#waiting.length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** Rejects an input whose deadline has passed, or whose client has disconnected. */
function isWanted<In, Out>({ deadline, reject }: Waiting<In, Out>, now: number): boolean {
  if (deadline.at > now && !deadline.isOver) return true;
  reject(late());
  return false;
}
