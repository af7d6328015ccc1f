import { type Call, openTransaction } from '../call.ts';
import { Unavailable } from '../errors.ts';
import type { Holder } from '../shared-budget.ts';
import { AdaptiveWindow } from './adaptive-window.ts';
import { FairQueue } from './fair-queue.ts';
import {
  type Failure,
  failureOf,
  isContention,
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
  sent(batch: SentBatch): (failure?: Failure) => void;
}

/** Low-cardinality labels for a queue. */
export interface QueueName {
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

/**
 * Runs a batch.
 *
 * @returns results in the order of the inputs
 */
export type RunBatch<In, Out> = (inputs: In[]) => Promise<Array<Out | Error>>;

export interface BatchOptions extends QueueName {
  observers?: readonly DatabaseObserver[];
  maxBatch: number;
  /**
   * For how many an input counts in its batch; by default for one.
   *
   * @param known what the inputs before it have added
   */
  weigh?(input: never, known: Set<unknown>): number;
  /**
   * The limit of inputs in flight never falls below this. By default there is no
   * limit.
   */
  minWindow?: number;
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
  /** Waits for a connection, and then sends the batch; by default at once. */
  share?(send: () => Promise<void>): Promise<void>;
  /**
   * Whether the inputs of a failed batch are retried; by default when one of
   * them may be at fault.
   */
  isRetryable?(error: unknown): boolean;
}

interface Waiting {
  readonly input: unknown;
  readonly call: Call;
  readonly since: number;
  /** Of a failed batch, whose parts are tried again. */
  readonly trial?: Trial;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

type Batch = Waiting[];

/** What is known of a failed batch. */
interface Trial {
  /** How long (ms) its next part may take; 0 for reads. */
  wait: number;
  /** How many of its statements have met a lock or a conflict. */
  contended: number;
}

const untried: Trial = { wait: 0, contended: 0 };

/** How many inputs may wait, shared by the callers. */
export const maxWaiting = 8192;
const sweepInterval = 100;
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
  readonly #run: RunBatch<unknown, unknown>;
  readonly #options: Required<BatchOptions>;
  readonly #waiting: FairQueue<Waiting>;
  /**
   * Parts of failed batches: each read alone; of writes those of each caller,
   * then halves. So a few faulty inputs cost a few more trips; if all are
   * faulty, two trips for each. Callers take turns here, too, and a retry takes
   * turns with a batch of callers without retries: faults delay only their own
   * caller, whose inputs keep their order. A locked row or a conflict fails
   * all inputs of its caller, because each half might wait as long; the third
   * fails the other parts. The lock of a table fails the whole batch, and so
   * does a write that takes too long.
   */
  readonly #retries = new FairQueue<Batch>(Number.POSITIVE_INFINITY);
  #isTurnOfRetry = true;
  /** When the last batch was answered. */
  #answeredAt = 0;
  /** Batches in flight, with the time since when. */
  readonly #inFlight = new Map<Batch, number>();
  /** Those that run: they may have an effect, if they have a connection. */
  readonly #running = new WeakSet<Batch>();
  #blocking: Batch | undefined;
  #releaseTimer: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isConcurrent = false;
  #sweeper: NodeJS.Timeout | undefined;
  #refused = 0;
  readonly #window: AdaptiveWindow;

  /**
   * @param run returns results in the order of the inputs; an `Error` among
   *   them fails that input alone
   */
  constructor(run: RunBatch<In, Out>, options: BatchOptions) {
    const { isWrite = false } = options;
    this.#run = run as RunBatch<unknown, unknown>;
    this.#waiting = new FairQueue(options.maxWaiting);
    this.#options = {
      isWrite,
      isRetryable: (error) =>
        isWorthAnotherTry(error, isWrite ? 'writes' : 'reads'),
      share: (send) => send(),
      weigh: () => 1,
      minWindow: Number.POSITIVE_INFINITY,
      observers: [],
      ...options,
    };
    const { minWindow, maxBatch } = this.#options;
    this.#window = new AdaptiveWindow(minWindow, 2 * maxBatch);
  }

  /**
   * @throws Unavailable when too many inputs of this caller are
   *   pending, or the deadline passes
   */
  add(input: In, call: Call) {
    // Those of a transaction join no others.
    if (openTransaction.getStore()) return this.#runAlone(input);
    const { promise, resolve, reject } = Promise.withResolvers<Out>();
    const since = performance.now();
    if (!this.#queue({ input, call, since, resolve, reject })) {
      this.#refused += 1;
      return Promise.reject(Unavailable.busy());
    }
    this.#sweeper ??= setInterval(
      () => this.#rejectLate(),
      sweepInterval,
    ).unref();
    this.#schedule();
    return promise;
  }

  /** @returns false when it is refused */
  #queue(one: Waiting) {
    const holder = holderOf(one);
    const first = this.#waiting.headOf(holder);
    const isLate = this.isStuck || this.#isOld(first);
    return !isLate && this.#waiting.push(holder, one);
  }

  async #runAlone(input: In) {
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

  #isOld(one: Waiting | undefined) {
    return one !== undefined && ageOf(one) > this.#options.maxAge;
  }

  get #length() {
    return this.#retries.length + this.#waiting.length;
  }

  get state(): QueueState {
    const { collection, operation } = this.#options;
    const retried = this.#retries.items.flat();
    const oldest = [...retried, ...this.#waiting.heads];
    return {
      collection,
      operation,
      waiting: retried.length + this.#waiting.length,
      oldest: Math.max(0, ...oldest.map(ageOf)),
      refused: this.#refused,
    };
  }

  /** How many inputs the next batch may have. */
  get #room() {
    const { maxBatch, maxInFlight } = this.#options;
    if (this.#inFlight.size >= maxInFlight) return 0;
    const countedSince = performance.now() - hangsAfter;
    let counted = 0;
    for (const [batch, sentAt] of this.#inFlight) {
      if (sentAt > countedSince) counted += batch.length;
    }
    return Math.min(maxBatch, this.#window.size - counted);
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
    const full = Math.min(this.#options.maxBatch, this.#window.size);
    return this.#length < full;
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
    const batch = this.#nextBatch();
    this.#isConcurrent = batch.length > 1;
    if (batch.length > 0) void this.#runBatch(batch);
    this.#schedule();
  }

  /**
   * Takes as many pending inputs as fit into one batch, and rejects those whose
   * client has disconnected.
   */
  #nextBatch() {
    // The window may have become smaller since the batch was scheduled.
    while (this.#length > 0 && this.#room > 0) {
      const next = this.#takeNext();
      this.#window.isLimiting = this.#waiting.length > 0;
      const batch = next.filter(isWanted);
      if (batch.length > 0) return batch;
    }
    return [];
  }

  #takeNext() {
    const isRetry = this.#isTurnOfRetry || this.#waiting.length === 0;
    this.#isTurnOfRetry = !isRetry;
    const [retried] = isRetry ? this.#retries.take(1) : [];
    if (retried) return retried;
    // Without a retry the turn passes.
    const known = new Set();
    const weigh = ({ input }: Waiting) =>
      this.#options.weigh(input as never, known);
    return this.#waiting.take(this.#room, this.#retries, weigh);
  }

  async #runBatch(batch: Batch) {
    const sentAt = performance.now();
    this.#inFlight.set(batch, sentAt);
    this.#blocking = batch;
    for (const { call, since } of batch)
      call.batched(since, sentAt, batch.length);
    const endings = this.#observe(batch);
    let failure: Failure | undefined;
    try {
      await this.#options.share(() => this.#send(batch, sentAt));
    } catch (error) {
      failure = failureOf(error);
      this.#fail(batch, error, performance.now() - sentAt);
    }
    for (const end of endings) end(failure);
    this.#inFlight.delete(batch);
    if (this.#blocking === batch) this.#releaseNext();
    else this.#schedule();
  }

  async #send(batch: Batch, since: number) {
    this.#running.add(batch);
    keepWanted(batch);
    if (batch.length === 0) return;
    const outputs = await this.#run(batch.map(({ input }) => input));
    this.#answeredAt = performance.now();
    this.#window.adapt(batch.length, this.#answeredAt - since);
    for (const [at, one] of batch.entries()) settle(one, outputs[at]);
  }

  #observe(batch: Batch) {
    const { collection, operation, observers } = this.#options;
    const calls = batch.map(({ call }) => call);
    const sent = { collection, operation, size: batch.length, calls };
    return observers.map((observer) => observer.sent(sent));
  }

  #fail(batch: Batch, error: unknown, duration: number) {
    const { isWrite, isRetryable } = this.#options;
    const trial = batch[0]?.trial ?? { ...untried };
    const isContended = isWrite && isContention(error);
    if (isContended) trial.contended += 1;
    if (isWrite) trial.wait = Math.max(trial.wait, duration);
    const byCaller = Map.groupBy(batch, holderOf);
    const hasParts = (isContended ? byCaller.size : batch.length) > 1;
    if (hasParts && isRetryable(error)) this.#retry(byCaller, trial);
    else for (const one of batch) one.reject(error);
  }

  /** They wait once more, from now on. */
  #retry(byCaller: Map<Holder, Batch>, trial: Trial) {
    const since = performance.now();
    for (const [holder, inputs] of byCaller) {
      const own = inputs.map((one) => ({ ...one, since, trial }));
      const half = Math.ceil(own.length / 2);
      const ofWrites = byCaller.size > 1 ? own.length : half;
      const size = this.#options.isWrite ? ofWrites : 1;
      const parts: Batch[] = [];
      while (own.length > 0) parts.push(own.splice(0, size));
      this.#retries.unshift(holder, parts);
    }
  }

  /**
   * Rejects inputs whose deadline has passed. One timer serves all, because a
   * timer per input costs as much as a query.
   */
  #rejectLate() {
    const now = performance.now();
    for (const batch of this.#inFlight.keys()) {
      const isUnknown = this.#options.isWrite && this.#running.has(batch);
      const late = isUnknown ? Unavailable.outcomeUnknown : Unavailable.late;
      for (const { call, reject } of batch)
        if (call.deadline <= now) reject(late());
    }
    this.#waiting.filter(isWanted);
    this.#retries.filter((part) => {
      keepWanted(part);
      return part.length > 0;
    });
    this.#schedule();
    if (this.#length > 0 || this.#inFlight.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function settle({ resolve, reject }: Waiting, output: unknown) {
  if (output instanceof Error) reject(output);
  else resolve(output);
}

/**
 * Rejects an input whose client has disconnected, whose deadline would pass if
 * its batch took as long as the failed one, or whose failed batch has met a lock
 * or a conflict three times.
 */
function isWanted({ call, reject, trial = untried }: Waiting) {
  const isLate = call.deadline <= performance.now() + trial.wait;
  const isOver = isLate || call.hasLeft || trial.contended > 2;
  if (isOver) reject(Unavailable.late());
  return !isOver;
}

function keepWanted(batch: Batch) {
  batch.splice(0, batch.length, ...batch.filter(isWanted));
}

function holderOf({ call }: Waiting): Holder {
  return call.caller?.id;
}

function ageOf({ since }: Waiting) {
  return performance.now() - since;
}
