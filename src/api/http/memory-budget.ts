import type { ServerResponse } from 'node:http';
import { serviceUnavailable } from '../../errors.ts';

/** Bytes. The number of connections bounds smaller bodies and answers. */
export const largeBodyBytes = 65_536;

/** Bounds the memory of all large bodies or all large answers. Requests beyond the limit get 503. */
export class MemoryBudget {
  #bytes = 0;

  /** @param noun `bodies` or `answers`, for the error message */
  constructor(
    private readonly noun: string,
    private readonly maxBytes: number,
  ) {}

  /**
   * Counts bytes until the response is sent or its client disconnects. A single holder is always admitted.
   *
   * @param isForced counts beyond the limit as well, for responses that must be sent
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(bytes: number, response: ServerResponse, isForced = false): void {
    if (!isForced && this.#bytes > 0 && this.#bytes + bytes > this.maxBytes) {
      throw serviceUnavailable(`Too many large ${this.noun} are under way; try again shortly.`);
    }
    // A closed response emits no `close` event to release the bytes.
    if (response.closed) return;
    this.#bytes += bytes;
    response.once('close', () => {
      this.#bytes -= bytes;
    });
  }

  /** Replaces the bytes that streams hold. @returns the number of bytes beyond the limit */
  recount(before: number, now: number): number {
    this.#bytes += now - before;
    return this.#bytes - this.maxBytes;
  }
}
