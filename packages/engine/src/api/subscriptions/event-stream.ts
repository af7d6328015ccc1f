import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { ListEvent } from '../../records/live-list.ts';
import type { StreamFormat } from './format.ts';

/** Pause (ms) without writes before a connection is cut. */
export const silenceBeforeCut = 100;
/**
 * Heartbeat interval (ms) without results. Some proxies close connections that
 * are idle for 15 s.
 */
export const heartbeatInterval = 10_000;

interface StreamSource {
  format: StreamFormat;
  /** Continues the subscription before its first result. */
  start: ListEvent['position'];
  /** The results as they arrive. It is closed with the response. */
  batches: AsyncGenerator<ListEvent, void>;
  /**
   * Yields the frames of results (`format.next`) when the client has received
   * the last ones.
   */
  write(batch: ListEvent): AsyncGenerator<Buffer, void>;
  /** @returns what the client is told when the subscription fails, as JSON */
  failureAsJson(failure: unknown): string;
}

/**
 * The response of one subscription. It reads results only after the client has
 * received the last ones, so a slow client holds one batch and no queue.
 */
export class EventStream {
  readonly openedAt = performance.now();
  #failure: unknown;
  #isCut = false;
  #wroteAt = performance.now();
  #wake = (): void => undefined;

  constructor(
    readonly response: ServerResponse,
    readonly source: StreamSource,
  ) {
    response.once('close', () => {
      this.#wake();
      void source.batches.return();
    });
  }

  /** The body of the response, without reading ahead. */
  body() {
    return Readable.from(this.#frames(), {
      objectMode: false,
      highWaterMark: 0,
    });
  }

  /** Ends the stream with an error for the client. */
  end(failure: unknown) {
    this.#failure ??= failure;
    this.#wake();
  }

  /**
   * Closes the connection without `complete`, so that the client resumes,
   * perhaps at another node. It pauses first, because graphql-sse's client does
   * not resume directly after an event.
   */
  cut() {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#wake();
    setTimeout(() => this.response.destroy(), silenceBeforeCut).unref();
  }

  /**
   * Sends a heartbeat when it is due, even while there are no results. Call it
   * every second or more often.
   */
  keepAlive() {
    if (this.#isSilent) this.#wake();
  }

  get #isSilent() {
    return performance.now() - this.#wroteAt >= heartbeatInterval;
  }

  async *#frames() {
    const { format, start, failureAsJson } = this.source;
    try {
      yield format.begin(start);
      yield* this.#results();
    } catch (error) {
      yield format.fail(failureAsJson(error)) + format.complete;
    }
  }

  /** Waits for nothing that is under way when the stream has failed. */
  async *#results(): AsyncGenerator<string | Buffer, void> {
    const { response } = this;
    const { format } = this.source;
    const made = this.#made();
    let next: Promise<IteratorResult<Buffer, void>> | undefined;
    while (!response.destroyed) {
      if (this.#failure !== undefined) throw this.#failure;
      // Prevents the response from ending as if it were complete.
      if (this.#isCut)
        await new Promise((closed) => response.once('close', closed));
      const woken = this.#woken();
      next ??= made.next();
      const arrived = await Promise.race([woken, next]);
      if (!arrived) {
        if (this.#isSilent) yield this.#sent(format.heartbeat);
        continue;
      }
      if (arrived.done) return yield format.complete;
      next = undefined;
      yield this.#sent(arrived.value);
    }
  }

  async *#made() {
    const { batches, write } = this.source;
    for await (const batch of batches) {
      yield* write(batch);
      // What is not sent is not charged.
      if (this.#isCut) return;
    }
  }

  #woken(): Promise<undefined> {
    return new Promise((wake) => {
      this.#wake = () => wake(undefined);
    });
  }

  #sent<Frame>(frame: Frame) {
    this.#wroteAt = performance.now();
    return frame;
  }
}
