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
 *   When a batch of several fails as a whole, each of its inputs is tried once more alone, unless `retryAlone` is false.
 */
export function coalesce<In, Out>(
  run: (inputs: In[]) => Promise<Array<Out | Error>>,
  { maxBatch, maxInFlight, patience }: CoalesceOptions,
  isRetryable: (error: unknown) => boolean,
): (input: In) => Promise<Out> {
  let waiting: Waiting<In, Out>[] = [];
  let inFlight = 0;
  let holding = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || waiting.length === 0 || holding > 0 || inFlight >= maxInFlight) return;
    scheduled = true;
    // After the sockets that are readable in this turn of the event loop have been read: who arrives together leaves together.
    setImmediate(depart);
  }

  function depart(): void {
    scheduled = false;
    const batch = waiting.length > maxBatch ? waiting.splice(0, maxBatch) : waiting;
    if (batch === waiting) waiting = [];
    void send(batch);
  }

  async function send(batch: Waiting<In, Out>[]): Promise<void> {
    inFlight += 1;
    holding += 1;
    let held = true;
    const letGo = () => {
      if (held) holding -= 1;
      held = false;
      schedule();
    };
    const timer = setTimeout(letGo, patience);
    try {
      await answer(batch);
    } finally {
      clearTimeout(timer);
      inFlight -= 1;
      letGo();
    }
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
