import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { GraphQLFormattedError } from 'graphql';
import type { Int64 } from '../../storage/input/int64.ts';
import { eventStream } from '../graphql/request.ts';
import type { Follower } from './live-list.ts';

/** The frames of GraphQL over server-sent events, distinct connections mode (graphql-sse, PROTOCOL.md). */
export const frames = {
  next: (result: string) => `event: next\ndata: ${result}\n\n`,
  /** With the id that `Last-Event-ID` continues from. */
  item: (id: Int64, result: string) => `event: next\nid: ${id}\ndata: ${result}\n\n`,
  /** The data are empty, or `EventSource` would not tell of it. */
  complete: 'event: complete\ndata:\n\n',
  /** Says from where it continues, before anything has come. No event: browsers only remember the id. */
  position: (id: Int64) => `id: ${id}\n\n`,
  comment: ':\n\n',
};

export const eventHeaders = {
  'content-type': eventStream,
  'cache-control': 'no-store, no-transform',
  // nginx would gather events.
  'x-accel-buffering': 'no',
};

export interface EventStreamOptions {
  source: Follower<{ readonly id: Int64 }>;
  response: ServerResponse;
  /** Writes items as frames. */
  write(items: readonly unknown[]): string | Promise<string>;
  /** Charges items. @throws StoreError TOO_MANY_REQUESTS */
  charge(items: number): Promise<void>;
  /** Items are on their way. */
  onSent(items: number): void;
  /** Logs a failure, and puts it into the words of the API. */
  format(error: unknown): GraphQLFormattedError;
  /** Called once, when it is over. */
  onEnd(errors: readonly GraphQLFormattedError[] | undefined): void;
}

/** How long (ms) nothing is written before a stream is cut off. */
export const breath = 100;
/** After this long (ms) without an event there is a comment. Proxies cut off what says nothing for 15 seconds and more. */
export const silence = 10_000;

/**
 * The events of one subscription. A page is read when the client has taken the last one, so that a slow client holds one
 * page, not a queue.
 */
export class EventStream extends Readable {
  readonly bornAt = performance.now();
  /** When it was told to end; undefined while it goes on. */
  endsSince: number | undefined;
  readonly #options: EventStreamOptions;
  #failure: unknown;
  #isCut = false;
  #spokenAt = performance.now();
  #errors: readonly GraphQLFormattedError[] | undefined;

  constructor(options: EventStreamOptions) {
    super({ highWaterMark: 16_384 });
    this.#options = options;
    this.push(frames.position(options.source.position));
  }

  override _read(): void {
    this.#pull().catch((error: unknown) => this.#fail(error));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    void this.#options.source.return();
    this.#options.onEnd(this.#errors);
    done(error);
  }

  /** Ends it with an error, which its client is told. */
  end(failure: unknown): void {
    if (this.endsSince !== undefined) return;
    this.endsSince = performance.now();
    this.#failure = failure;
    void this.#options.source.return();
  }

  /**
   * Cuts it off without `complete`: a client that resumes does so elsewhere. graphql-sse's client takes a connection that
   * ends for a lost one, unless events came with the end; so nothing is written for a moment.
   */
  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    void this.#options.source.return();
    setTimeout(() => this.#options.response.destroy(), breath).unref();
  }

  /** Says that it is still there, also while the database is away; not to a client that does not read. */
  breathe(now: number): void {
    const { response } = this.#options;
    if (now - this.#spokenAt < silence || this.endsSince !== undefined || this.#isCut) return;
    this.#spokenAt = now;
    // Not pushed: that would begin another read beside the one that waits.
    if (!response.writableNeedDrain) response.write(frames.comment);
  }

  async #pull(): Promise<void> {
    const { source, write, charge, onSent } = this.#options;
    const { value: items } = await source.next();
    if (this.#isCut) return;
    if (!items || this.#failure !== undefined) return this.#fail(this.#failure);
    await charge(items.length);
    const text = await write(items);
    onSent(items.length);
    this.#spokenAt = performance.now();
    this.push(text);
  }

  #fail(error: unknown): void {
    if (this.destroyed || this.#isCut) return;
    this.endsSince ??= performance.now();
    this.#errors = [this.#options.format(error)];
    void this.#options.source.return();
    this.push(frames.next(JSON.stringify({ errors: this.#errors })) + frames.complete);
    this.push(null);
  }
}
