import { type Deadline, noDeadline } from '../../deadline.ts';
import { retry } from '../../runtime/retry.ts';
import type { DatabaseFailure, DatabaseObserver, QueueState } from '../../runtime/telemetry/observers.ts';
import { busy, failureOf, isConflict, late } from '../database/errors.ts';

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

/** How often a batch is repeated after a conflict, and how long (ms) the first pause is on average. */
const retries = 3;
const shortPause = 20;

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
  /** Those in flight of which nothing has been written so far. */
  readonly #pausing = new Set<Waiting<In, Out>[]>();
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
    const { maxBatch } = this.#options;
    const batch: Waiting<In, Out>[] = [];
    let taken = 0;
    for (const one of this.#waiting) {
      const isFull = batch.length === maxBatch || one.isAlone || batch[0]?.isAlone;
      if (batch.length > 0 && isFull) break;
      taken += 1;
      if (one.deadline.isOver) one.reject(late());
      else batch.push(one);
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return batch;
  }

  async #send(batch: Waiting<In, Out>[]): Promise<void> {
    this.#inFlight.add(batch);
    this.#holder = batch;
    const now = performance.now();
    for (const { deadline, since } of batch) deadline.batched?.(now - since, batch.length);
    try {
      const outputs = await this.#attempt(batch);
      batch.forEach(({ resolve, reject }, index) => {
        const output = outputs[index] as Out | Error;
        if (output instanceof Error) reject(output);
        else resolve(output);
      });
    } catch (error) {
      if (batch.length > 1 && this.#options.isRetryable(error)) this.#tryAlone(batch);
      else for (const { reject } of batch) reject(error);
    }
    this.#inFlight.delete(batch);
    if (this.#holder === batch) this.#letGo();
    else this.#schedule();
  }

  /** A batch that the database has undone for the sake of another transaction is sent again, a few times. */
  async #attempt(batch: Waiting<In, Out>[]): Promise<Array<Out | Error>> {
    const { observers } = this.#options;
    const send = () => (observers.length > 0 ? this.#observed(batch) : this.#roundTrip(batch));
    return retry(send, {
      pause: (attempt) => attempt * shortPause,
      isWorthIt: (error, attempt) => attempt <= retries && isConflict(error),
      // Nothing has been written: inputs whose time ends meanwhile are told so, and are not sent again.
      onFailure: () => void this.#pausing.add(batch),
      isWanted: () => {
        this.#pausing.delete(batch);
        dropEnded(batch);
        return batch.length > 0;
      },
    });
  }

  #roundTrip(batch: Waiting<In, Out>[]): Promise<Array<Out | Error>> {
    return this.#run(
      batch.map(({ input }) => input),
      (node) => {
        for (const { deadline } of batch) deadline.servedBy?.(node);
      },
    );
  }

  async #observed(batch: Waiting<In, Out>[]): Promise<Array<Out | Error>> {
    const { collection, operation, observers } = this.#options;
    const size = batch.length;
    const ends = observers.map((one) =>
      one.sent({ collection, operation, size, deadlines: batch.map(({ deadline }) => deadline) }),
    );
    let failure: DatabaseFailure | undefined;
    try {
      return await this.#roundTrip(batch);
    } catch (error) {
      failure = failureOf(error);
      throw error;
    } finally {
      for (const end of ends) end(failure);
    }
  }

  #tryAlone(batch: Waiting<In, Out>[]): void {
    for (const one of batch) one.isAlone = true;
    this.#waiting = [...batch, ...this.#waiting];
  }

  /** Rejects inputs whose deadline has passed. One timer serves all: a timer for each would cost as much as a query. */
  #sweep(): void {
    const now = performance.now();
    for (const batch of this.#inFlight) {
      const tooLate = this.#pausing.has(batch) ? late : this.#options.tooLate;
      for (const { deadline, reject } of batch) if (deadline.at <= now) reject(tooLate());
    }
    this.#waiting = this.#waiting.filter(({ deadline, reject }) => {
      if (deadline.at > now && !deadline.isOver) return true;
      reject(late());
      return false;
    });
    if (this.#waiting.length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** Rejects the inputs of a batch that nobody waits for any more, and removes them from it. */
function dropEnded<In, Out>(batch: Waiting<In, Out>[]): void {
  const now = performance.now();
  const wanted = batch.filter(({ deadline, reject }) => {
    if (deadline.at > now && !deadline.isOver) return true;
    reject(late());
    return false;
  });
  batch.splice(0, batch.length, ...wanted);
}
