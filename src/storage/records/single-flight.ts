import type { Deadline } from '../../deadline.ts';
import { StoreError } from '../../errors.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import { busy, late } from '../database/errors.ts';

/** What is under way under a name: undefined if it fails. */
interface First<Result> {
  over: Promise<Result | undefined>;
}

/** How many may wait for others of the same name. */
const maxWaiting = 4096;
/** `setTimeout` knows no longer time. */
const longest = 2 ** 31 - 1;

/** Of what this process does under the same name at the same time only one is carried out. */
export class SingleFlight<Result> {
  readonly #first = new Map<string, First<Result>>();
  #waiting = 0;

  /**
   * @param work is not started while other work under this name is under way
   * @param over resolves, after `work` has failed, when nothing goes on that it has started
   * @returns the result of earlier work and true, or that of `work` and false
   * @throws StoreError IDEMPOTENCY_KEY_IN_USE when the deadline passes before `work` may start; SERVICE_UNAVAILABLE
   */
  async run(
    name: string,
    deadline: Deadline,
    work: () => Promise<Result>,
    over: () => Promise<unknown> | undefined,
  ): Promise<[Result, isEarlier: boolean]> {
    for (let first = this.#first.get(name); first; first = this.#first.get(name)) {
      const result = await this.#wait(first, deadline);
      if (result !== undefined) return [result, true];
      if (deadline.isOver) throw late();
    }
    const result = work();
    const end = result.catch(() => Promise.resolve(over()).then(nothing, nothing));
    this.#first.set(name, { over: end.finally(() => this.#first.delete(name)) });
    return [await result, false];
  }

  async #wait({ over }: First<Result>, { at }: Deadline): Promise<Result | undefined> {
    if (this.#waiting >= maxWaiting) throw busy();
    this.#waiting += 1;
    try {
      return await withTimeout(Math.min(at - performance.now(), longest), over, inUse);
    } finally {
      this.#waiting -= 1;
    }
  }
}

const nothing = () => undefined;

/** The error while the first request with a key has no outcome. */
export function inUse(): StoreError {
  return new StoreError(
    'IDEMPOTENCY_KEY_IN_USE',
    'A request with this Idempotency-Key is still under way; send it again shortly.',
    { headers: { 'retry-after': '1' } },
  );
}
