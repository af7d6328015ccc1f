import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Int64 } from '../../storage/input/int64.ts';
import type { Addition } from '../../storage/records/live-list.ts';

/** How results are framed in a response that goes on. Results are JSON. */
export interface Framing {
  mediaType: string;
  /** Before anything has come: where the subscription begins. */
  start(position: Int64): string;
  /** @param id continues the subscription after this result */
  next(result: string, id?: Int64): string;
  /** Shows that the connection is alive. */
  heartbeat: string;
  complete: string;
}

/** GraphQL over server-sent events, distinct connections mode (graphql-sse, PROTOCOL.md). */
export const serverSentEvents = {
  mediaType: 'text/event-stream; charset=utf-8',
  // Without an event: a browser only remembers the id, and sends it as `Last-Event-ID`.
  start: (position: Int64) => `id: ${position}\n\n`,
  next: (result: string, id?: Int64) => `event: next\n${id === undefined ? '' : `id: ${id}\n`}data: ${result}\n\n`,
  heartbeat: ':\n\n',
  // Without the line of data, `EventSource` would ignore the event.
  complete: 'event: complete\ndata:\n\n',
} as const satisfies Framing;

/** Nothing on the way may store, compress or buffer (nginx) a stream. */
const headers = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' };

/** Sends a result that has an end, framed as a subscription with this result alone. It cannot be resumed or cached. */
export function sendFramed(reply: FastifyReply, framing: Framing, result: string): FastifyReply {
  reply.contentTag = null;
  return reply
    .headers(headers)
    .type(framing.mediaType)
    .send(framing.next(result) + framing.complete);
}

export interface EventStreamOptions {
  start: Int64;
  additions: AsyncIterator<Addition, void>;
  framing: Framing;
  response: ServerResponse;
  /** Charges items to the quota, and writes them as frames. @throws StoreError TOO_MANY_REQUESTS */
  write(items: Addition['items']): Promise<Buffer>;
  /** Writes the result that tells the client why the subscription has ended. */
  writeFailure(error: unknown): string;
}

/** Nothing is written for this long (ms) before a connection is cut. */
export const silenceBeforeCut = 100;
/** After this long (ms) without a result there is a heartbeat: proxies close connections that are silent for 15 s. */
export const heartbeatInterval = 10_000;

/**
 * The response of one subscription. The list is read when the client has taken the last page, so a slow client holds one
 * page and no queue.
 */
export class EventStream {
  readonly openedAt = performance.now();
  /** Since when it has been ending by itself; undefined while it goes on. */
  endingSince: number | undefined;
  readonly #options: EventStreamOptions;
  #failure: unknown;
  #isCut = false;
  #wroteAt = performance.now();
  #wake = (): void => undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  /** Nothing is read ahead of the client. */
  sendTo(reply: FastifyReply): FastifyReply {
    const { framing, response } = this.#options;
    reply.headers(headers).type(framing.mediaType);
    if (reply.request.method === 'HEAD') return reply.send();
    response.once('close', () => this.#wake());
    return reply.send(Readable.from(this.#frames(), { objectMode: false, highWaterMark: 0 }));
  }

  /** Bytes that the client has not taken yet. */
  get unsentBytes(): number {
    return this.#options.response.writableLength;
  }

  /** Ends it with an error for its client. */
  end(failure: unknown): void {
    this.#failure ??= failure;
    this.endingSince ??= performance.now();
    this.#wake();
  }

  /**
   * Closes the connection without `complete`, so that the client resumes, perhaps at another node. graphql-sse's client
   * resumes only if no event came just before: so nothing is written for a moment.
   */
  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#wake();
    setTimeout(() => this.#options.response.destroy(), silenceBeforeCut).unref();
  }

  /** Sends a heartbeat when one is due, also while the database is unavailable. */
  keepAlive(): void {
    if (this.#isSilent) this.#wake();
  }

  get #isSilent(): boolean {
    return performance.now() - this.#wroteAt >= heartbeatInterval;
  }

  async *#frames(): AsyncGenerator<string | Buffer, void> {
    const { start, additions, framing, response, write, writeFailure } = this.#options;
    let next: Promise<IteratorResult<Addition, void>> | undefined;
    try {
      yield framing.start(start);
      while (!response.destroyed) {
        if (this.#failure !== undefined) throw this.#failure;
        // The response must not end as if it were complete.
        if (this.#isCut) await new Promise((closed) => response.once('close', closed));
        next ??= additions.next();
        const added = await Promise.race([next, this.#woken()]);
        if (added?.value) {
          next = undefined;
          yield this.#sent(await write(added.value.items));
        } else if (this.#isSilent) yield this.#sent(framing.heartbeat);
      }
    } catch (error) {
      this.endingSince ??= performance.now();
      yield framing.next(writeFailure(error)) + framing.complete;
    } finally {
      void additions.return?.();
    }
  }

  #woken(): Promise<undefined> {
    return new Promise((wake) => {
      this.#wake = () => wake(undefined);
    });
  }

  #sent<Frame>(frame: Frame): Frame {
    this.#wroteAt = performance.now();
    return frame;
  }
}
