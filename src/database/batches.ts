import { type Call, unhurried } from '../call.ts';
import { busy, late } from './driver-errors.ts';

export interface BatchOptions<In> {
  /** How many inputs travel together at most. */
  maxBatch: number;
  /** How many batches may be under way at most, counting those let go because an earlier one was slow. */
  maxInFlight: number;
  /** How long, in milliseconds, a batch holds back those behind it. */
  patience: number;
  /** How many inputs may wait at most, and how long (ms) the first of them may have waited; beyond it no more are taken. */
  maxWaiting: number;
  maxAge: number;
  /** The size of an input, or of its answer as far as that can be foreseen, in bytes; 0 when absent. */
  sizeOf?: (input: In) => number;
  /** The size of a batch at most; a single input may be larger. Sixteen times as much may wait. */
  maxSize?: number;
  /** Whether a batch of several that failed as a whole may be tried again, each input alone. */
  isRetryable(error: unknown): boolean;
  /** What an input is told whose deadline passes while its batch is under way: that it was late, unless stated. */
  tooLate?: () => Error;
}

interface Waiting<In, Out> {
  readonly input: In;
  readonly call: Call;
  readonly since: number;
  readonly size: number;
  /** Its batch has failed: it goes alone now. */
  isAlone: boolean;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

const sweepInterval = 100;

/**
 * Makes one round trip serve all who wait for it. While a batch is under way, inputs that arrive wait and leave
 * together in the next one; when none is, an input leaves at once. An input never joins a batch already sent: what it
 * gets was read, or written, after it arrived.
 */
export class Batches<In, Out> {
  readonly #run: (inputs: In[]) => Promise<Array<Out | Error>>;
  readonly #options: Required<BatchOptions<In>>;
  #waiting: Waiting<In, Out>[] = [];
  #waitingSize = 0;
  readonly #inFlight = new Set<Waiting<In, Out>[]>();
  /** The batch under way that the others wait for. */
  #holder: Waiting<In, Out>[] | undefined;
  #impatience: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isCrowded = false;
  #sweeper: NodeJS.Timeout | undefined;

  /** @param run takes a batch and answers in its order; an `Error` in the answer fails that input alone. */
  constructor(run: (inputs: In[]) => Promise<Array<Out | Error>>, options: BatchOptions<In>) {
    this.#run = run;
    this.#options = { sizeOf: () => 0, maxSize: Number.POSITIVE_INFINITY, tooLate: late, ...options };
  }

  /** @throws StoreError SERVICE_UNAVAILABLE when too much waits already, or the deadline of the call passes */
  add(input: In, call: Call = unhurried): Promise<Out> {
    const now = performance.now();
    return new Promise((resolve, reject) => {
      if (this.#isFull(now)) return reject(busy());
      const size = this.#options.sizeOf(input);
      this.#waiting.push({ input, call, since: now, size, isAlone: false, resolve, reject });
      this.#waitingSize += size;
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepInterval).unref();
      this.#schedule();
    });
  }

  /** True when no more inputs are taken, because those that wait do not get on. */
  get isStuck(): boolean {
    return this.#isFull(performance.now());
  }

  #isFull(now: number): boolean {
    const { maxWaiting, maxAge, maxSize } = this.#options;
    if (this.#waiting.length === 0) return false;
    // Those that are tried again have waited in a batch, not here.
    const first = this.#waiting.find(({ isAlone }) => !isAlone);
    return (
      this.#waiting.length >= maxWaiting ||
      this.#waitingSize > 16 * maxSize ||
      (first !== undefined && now - first.since > maxAge)
    );
  }

  #schedule(): void {
    const [first] = this.#waiting;
    if (!first || this.#isScheduled) return;
    // A full batch has nobody more to wait for, and one that is tried again waits for nobody.
    const isHeld = this.#holder !== undefined && this.#waiting.length < this.#options.maxBatch && !first.isAlone;
    if (isHeld) this.#impatience ??= setTimeout(() => this.#letGo(), this.#options.patience);
    else if (this.#inFlight.size < this.#options.maxInFlight) {
      this.#isScheduled = true;
      // Where several come at a time, all who are readable in this turn of the event loop leave together; a lone one at once.
      if (this.#isCrowded) setImmediate(() => this.#depart());
      else queueMicrotask(() => this.#depart());
    }
  }

  /** Lets the next batch go although the one before it is still under way. */
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

  /** Takes from those that wait as many as may travel together, and forgets those whose client has gone. */
  #nextBatch(): Waiting<In, Out>[] {
    const { maxBatch, maxSize } = this.#options;
    const batch: Waiting<In, Out>[] = [];
    let size = 0;
    let taken = 0;
    for (const one of this.#waiting) {
      const isFull = batch.length === maxBatch || size + one.size > maxSize || one.isAlone || batch[0]?.isAlone;
      if (batch.length > 0 && isFull) break;
      taken += 1;
      this.#waitingSize -= one.size;
      if (one.call.isOver) one.reject(one.call.refusal ?? late());
      else {
        batch.push(one);
        size += one.size;
      }
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return batch;
  }

  async #send(batch: Waiting<In, Out>[]): Promise<void> {
    this.#inFlight.add(batch);
    this.#holder = batch;
    try {
      const outputs = await this.#run(batch.map(({ input }) => input));
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

  #tryAlone(batch: Waiting<In, Out>[]): void {
    for (const one of batch) {
      one.isAlone = true;
      this.#waitingSize += one.size;
    }
    this.#waiting = [...batch, ...this.#waiting];
  }

  /** Answers those whose deadline has passed. One timer for all of them: a timer for each would cost as much as a query. */
  #sweep(): void {
    const now = performance.now();
    for (const batch of this.#inFlight) {
      for (const { call, reject } of batch) if (call.deadline <= now) reject(this.#options.tooLate());
    }
    this.#waiting = this.#waiting.filter(({ size, call, reject }) => {
      if (call.deadline > now && !call.isOver) return true;
      this.#waitingSize -= size;
      reject(call.refusal ?? late());
      return false;
    });
    if (this.#waiting.length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
