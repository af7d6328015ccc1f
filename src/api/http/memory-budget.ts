import type { ServerResponse } from 'node:http';
import { tryAgain } from '../../errors.ts';

/** In bytes. The number of connections bounds smaller bodies and answers. */
export const large = 65_536;

/** Bounds the memory of all large bodies, or of all large answers: those beyond it get 503 until others end. */
export class MemoryBudget {
  readonly #noun: string;
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param noun `bodies` or `answers`, for the error message */
  constructor(noun: string, maxBytes: number) {
    this.#noun = noun;
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts bytes until the response is sent or its client disconnects. The first ones are always admitted.
   *
   * @param isForced counts beyond the limit as well: for what must not be refused
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(bytes: number, response: ServerResponse, isForced = false): void {
    if (!isForced && this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      throw tryAgain(`Too many large ${this.#noun} are under way; try again shortly.`);
    }
    // A closed response emits no further `close` event that would release them.
    if (response.closed) return;
    this.#bytes += bytes;
    response.once('close', () => {
      this.#bytes -= bytes;
    });
  }

  /** Replaces what streams hold, which they count by themselves. @returns how many bytes there are beyond the limit */
  recount(before: number, now: number): number {
    this.#bytes += now - before;
    return this.#bytes - this.#maxBytes;
  }
}
