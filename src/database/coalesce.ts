export interface CoalesceOptions {
  /** How many inputs travel together at most. */
  maxBatch: number;
  /** How many batches may be under way at most, counting those let go because an earlier one was slow. */
  maxInFlight: number;
  /** How long, in milliseconds, a batch holds back those behind it. */
  patience: number;
}

interface Waiting<In, Out> {
  input: In;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

/**
 * Makes one round trip serve all who wait for it. While a batch is under way, inputs that arrive wait and leave
 * together in the next one; when none is, an input leaves at once. An input never joins a batch already sent: what it
 * gets was read, or written, after it arrived.
 *
 * @param run takes a batch and answers in its order; an `Error` in the answer fails that input alone.
 * @param isRetryable whether a batch of several that failed as a whole may be tried again, each input alone.
 */
export function coalesce<In, Out>(
  run: (inputs: In[]) => Promise<Array<Out | Error>>,
  { maxBatch, maxInFlight, patience }: CoalesceOptions,
  isRetryable: (error: unknown) => boolean,
): (input: In) => Promise<Out> {
  let waiting: Waiting<In, Out>[] = [];
  let inFlight = 0;
  /** The batch under way that the others wait for. */
  let holder: Waiting<In, Out>[] | undefined;
  let impatience: NodeJS.Timeout | undefined;
  let scheduled = false;
  let crowded = false;

  function schedule(): void {
    if (waiting.length === 0 || scheduled) return;
    // A full batch has nobody more to wait for.
    const isHeld = holder !== undefined && waiting.length < maxBatch;
    if (isHeld) impatience ??= setTimeout(letGo, patience);
    else if (inFlight < maxInFlight) {
      scheduled = true;
      // Where several come at a time, all who are readable in this turn of the event loop leave together; a lone one at once.
      if (crowded) setImmediate(depart);
      else queueMicrotask(depart);
    }
  }

  /** Lets the next batch go although the one before it is still under way. */
  function letGo(): void {
    clearTimeout(impatience);
    impatience = undefined;
    holder = undefined;
    schedule();
  }

  function depart(): void {
    scheduled = false;
    const batch = waiting.length > maxBatch ? waiting.splice(0, maxBatch) : waiting;
    if (batch === waiting) waiting = [];
    crowded = batch.length > 1;
    void send(batch);
    schedule();
  }

  async function send(batch: Waiting<In, Out>[]): Promise<void> {
    inFlight += 1;
    holder = batch;
    await answer(batch);
    inFlight -= 1;
    if (holder === batch) letGo();
    else schedule();
  }

  async function answer(batch: Waiting<In, Out>[]): Promise<void> {
    try {
      const outputs = await run(batch.map(({ input }) => input));
      batch.forEach(({ resolve, reject }, index) => {
        const output = outputs[index] as Out | Error;
        if (output instanceof Error) reject(output);
        else resolve(output);
      });
    } catch (error) {
      if (batch.length === 1 || !isRetryable(error)) for (const { reject } of batch) reject(error);
      else for (const one of batch) await answer([one]);
    }
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      schedule();
    });
}
