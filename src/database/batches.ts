import type { Call } from '../call.ts';
import { Unavailable } from '../errors.ts';
import { FairQueue } from '../shared-budget.ts';
import {
  failureOf,
  isDataError,
  isWorthAnotherTry,
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
export type RunBatch<In, Out> = (inputs: In[]) => Promise<Array<Out | Error>>;

export interface BatchOptions extends QueueName {
  observers?: readonly DatabaseObserver[];
  maxBatch: number;
  /** The fewest inputs that may be in flight; any number by default. */
  window?: number;
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
  /** True in a transaction, whose inputs join no others. */
  isApart?(): boolean;
  /**
   * Whether the inputs of a failed batch are retried; by default when one of
   * them may be at fault.
   */
  isRetryable?(error: unknown): boolean;
}

interface Waiting<In, Out> {
  readonly input: In;
  readonly call: Call;
  readonly since: number;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

const sweepInterval = 100;
/** Beyond the shortest round trip (ms): then fewer reads may be in flight. */
const longExcess = 100;
/** How long (ms) a batch in flight counts in the window. */
const hangsAfter = 1000;

/**
 * Combines concurrent inputs into batches. An idle queue sends an input at
 * once. While a batch is in flight, the next one collects inputs. It is sent
 * when the batch in flight ends, after `blockTime`, or when `maxBatch` inputs
 * wait. An input never joins a batch already sent, so its result was read or
 * written after the input arrived. Inputs of several callers leave in turn.
 */
export class Batches<In, Out> {
  readonly #run: RunBatch<In, Out>;
  readonly #options: Required<BatchOptions>;
  readonly #waiting: FairQueue<Waiting<In, Out>>;
  /**
   * Parts of failed batches: each read alone, halves of writes. So some at fault
   * cost few more trips, and all at fault two for each.
   */
  #retries: Waiting<In, Out>[][] = [];
  /** When the last batch was answered. */
  #answeredAt = 0;
  /** When each was sent. */
  readonly #inFlight = new Map<Waiting<In, Out>[], number>();
  #blocking: Waiting<In, Out>[] | undefined;
  #releaseTimer: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isConcurrent = false;
  #sweeper: NodeJS.Timeout | undefined;
  #refused = 0;
  /** How many inputs may be in flight. */
  #window: number;
  /** True when more wait than the window lets through. */
  #isLimited = false;
  /** The shortest round trip (ms), or what is usual with the fewest reads. */
  #shortest = Number.POSITIVE_INFINITY;

  /**
   * @param run returns results in the order of the inputs; an `Error` among
   *   them fails that input alone
   */
  constructor(run: RunBatch<In, Out>, options: BatchOptions) {
    const { isWrite = false } = options;
    this.#run = run;
    this.#waiting = new FairQueue(options.maxWaiting);
    this.#options = {
      isWrite,
      isRetryable: isWrite ? isDataError : isWorthAnotherTry,
      isApart: () => false,
      window: Number.POSITIVE_INFINITY,
      observers: [],
      ...options,
    };
    this.#window = this.#options.window;
  }

  /**
   * @throws Unavailable when too many inputs of this caller are
   *   pending, or the deadline passes
   */
  add(input: In, call: Call): Promise<Out> {
    if (this.#options.isApart()) return this.#runAlone(input);
    return new Promise((resolve, reject) => {
      const holder = call.caller?.id;
      const since = performance.now();
      const isLate = this.isStuck || this.#isOld(this.#waiting.headOf(holder));
      const one = { input, call, since, resolve, reject };
      const isQueued = !isLate && this.#waiting.push(holder, one);
      if (!isQueued) {
        this.#refused += 1;
        return reject(Unavailable.busy());
      }
      this.#sweeper ??= setInterval(
        () => this.#rejectLate(),
        sweepInterval,
      ).unref();
      this.#schedule();
    });
  }

  async #runAlone(input: In): Promise<Out> {
    const [output] = await this.#run([input]);
    if (output instanceof Error) throw output;
    return output as Out;
  }

  /**
   * True when new inputs are rejected because pending ones make no progress.
   */
  get isStuck() {
    const silence = performance.now() - this.#answeredAt;
    if (silence <= this.#options.maxAge) return false;
    return this.#waiting.heads.some((one) => this.#isOld(one));
  }

  #isOld(one: Waiting<In, Out> | undefined) {
    return one !== undefined && ageOf(one) > this.#options.maxAge;
  }

  get #length() {
    return this.#retries.flat().length + this.#waiting.length;
  }

  get state(): QueueState {
    const { collection, operation } = this.#options;
    const ages = [...this.#retries.flat(), ...this.#waiting.heads].map(ageOf);
    return {
      collection,
      operation,
      waiting: this.#length,
      oldest: Math.max(0, ...ages),
      refused: this.#refused,
    };
  }

  /** How many inputs the next batch may have. */
  get #room() {
    const { maxBatch, maxInFlight } = this.#options;
    if (this.#inFlight.size >= maxInFlight) return 0;
    let room = this.#window;
    const since = performance.now() - hangsAfter;
    for (const [{ length }, sent] of this.#inFlight) {
      if (sent > since) room -= length;
    }
    return Math.min(maxBatch, room);
  }

  #schedule() {
    if (this.#length === 0 || this.#isScheduled) return;
    if (this.#isBlocked) {
      const { blockTime } = this.#options;
      this.#releaseTimer ??= setTimeout(() => this.#releaseNext(), blockTime);
      return;
    }
    if (this.#room <= 0) return;
    this.#isScheduled = true;
    // While inputs arrive concurrently, a batch collects all inputs of this
    // turn of the event loop.
    if (this.#isConcurrent) setImmediate(() => this.#dispatch());
    else queueMicrotask(() => this.#dispatch());
  }

  /** A full batch and a retried input do not wait for the one in flight. */
  get #isBlocked() {
    if (this.#blocking === undefined || this.#retries.length > 0) return false;
    return this.#length < Math.min(this.#options.maxBatch, this.#window);
  }

  /**
   * Releases the next batch, although the previous one may still be in flight.
   */
  #releaseNext() {
    clearTimeout(this.#releaseTimer);
    this.#releaseTimer = undefined;
    this.#blocking = undefined;
    this.#schedule();
  }

  #dispatch() {
    this.#isScheduled = false;
    // The window may have become smaller since.
    const batch = this.#room > 0 ? this.#nextBatch() : [];
    this.#isConcurrent = batch.length > 1;
    if (batch.length > 0) void this.#runBatch(batch);
    this.#schedule();
  }

  /**
   * Takes as many pending inputs as fit into one batch, and rejects those whose
   * client has disconnected.
   */
  #nextBatch() {
    const now = performance.now();
    const batch: Waiting<In, Out>[] = [];
    while (this.#length > 0 && batch.length === 0) {
      const next = this.#retries.shift() ?? this.#waiting.take(this.#room);
      this.#isLimited = this.#waiting.length > 0;
      batch.push(...next.filter((one) => !isRejected(one, now)));
    }
    return batch;
  }

  async #runBatch(batch: Waiting<In, Out>[]) {
    const { collection, operation, observers } = this.#options;
    const { length: size } = batch;
    const now = performance.now();
    this.#inFlight.set(batch, now);
    this.#blocking = batch;
    for (const { call, since } of batch) call.batched(now - since, size);
    const calls = batch.map(({ call }) => call);
    const sent = { collection, operation, size, calls };
    const endings = observers.map((one) => one.sent(sent));
    let failure: ReturnType<typeof failureOf> | undefined;
    try {
      const outputs = await this.#run(batch.map(({ input }) => input));
      this.#adapt(size, performance.now() - now);
      for (const [at, one] of batch.entries()) settle(one, outputs[at]);
    } catch (error) {
      failure = failureOf(error);
      const mayRetry = size > 1 && this.#options.isRetryable(error);
      if (mayRetry) this.#retry(batch);
      else for (const one of batch) one.reject(error);
    }
    for (const end of endings) end(failure);
    this.#inFlight.delete(batch);
    if (this.#blocking === batch) this.#releaseNext();
    else this.#schedule();
  }

  /** They wait once more, from now on. */
  #retry(batch: Waiting<In, Out>[]) {
    const since = performance.now();
    const again = batch.map((one) => ({ ...one, since }));
    const size = this.#options.isWrite ? Math.ceil(batch.length / 2) : 1;
    this.#retries.unshift(...split(again, size));
  }

  /**
   * Chooses how many inputs may be in flight, as TCP does: fewer when round
   * trips are long, more when more wait, and as at first when nothing waits. So
   * the inputs of another caller need not wait for many.
   */
  #adapt(size: number, duration: number) {
    this.#answeredAt = performance.now();
    this.#shortest = Math.min(this.#shortest, duration);
    const { window: fewest, maxBatch } = this.#options;
    // What is long with the fewest in flight is not long because of them.
    if (this.#window === fewest)
      this.#shortest += (duration - this.#shortest) / 64;
    const isLong = duration - this.#shortest > longExcess;
    // Small batches make a full database slower.
    const most = Math.min(2 * maxBatch, this.#nextWindow(size, isLong));
    this.#window = Math.max(fewest, most);
  }

  #nextWindow(size: number, isLong: boolean) {
    if (isLong) return Math.floor(this.#window / 2);
    if (this.#isLimited) return this.#window + size;
    return this.#window - 1;
  }

  /**
   * Rejects inputs whose deadline has passed. One timer serves all, because a
   * timer per input costs as much as a query.
   */
  #rejectLate() {
    const now = performance.now();
    const lateInFlight = this.#options.isWrite
      ? Unavailable.outcomeUnknown
      : Unavailable.late;
    for (const { call, reject } of [...this.#inFlight.keys()].flat())
      if (call.deadline <= now) reject(lateInFlight());
    const isKept = (one: Waiting<In, Out>) => !isRejected(one, now);
    this.#waiting.filter(isKept);
    this.#retries = this.#retries
      .map((part) => part.filter(isKept))
      .filter((part) => part.length > 0);
    this.#schedule();
    if (this.#length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function split<Item>(items: Item[], size: number) {
  const parts: Item[][] = [];
  for (let at = 0; at < items.length; at += size)
    parts.push(items.slice(at, at + size));
  return parts;
}

function settle<Out>(one: Waiting<unknown, Out>, output: unknown) {
  if (output instanceof Error) one.reject(output);
  else one.resolve(output as Out);
}

/**
 * Rejects the input when its deadline has passed or its client has
 * disconnected.
 */
function isRejected<In, Out>({ call, reject }: Waiting<In, Out>, now: number) {
  const isOver = call.deadline <= now || call.hasLeft;
  if (isOver) reject(Unavailable.late());
  return isOver;
}

function ageOf({ since }: { since: number }) {
  return performance.now() - since;
}
