import { Readable } from 'node:stream';
import {
  setImmediate as nextTurn,
  setTimeout as sleep,
} from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from '../../access/keys/authenticator.ts';
import type { Config } from '../../config/config.ts';
import { badInput, type StoreError } from '../../errors.ts';
import { serialiseOnce } from '../../records/lists/reader.ts';
import type { ListEvent } from '../../records/live-list.ts';
import { type Int64, int64, int64FromText } from '../../validation/int64.ts';
import { toLoggedFailure } from '../http/failures.ts';
import { largeBodyBytes, type Unread } from '../http/lifecycle.ts';
import { EventStream, silenceBeforeCut } from './event-stream.ts';
import { type StreamFormat, streamHeaders } from './format.ts';
import { keyChecks } from './key-checks.ts';
import { assertPlace, refusalOf } from './places.ts';

declare module 'fastify' {
  interface FastifyInstance {
    subscriptions: Subscriptions;
  }
}

type Frames = Buffer | undefined;

/** A live list in the words of one of the APIs. */
interface Feed {
  format: StreamFormat;
  batches: AsyncGenerator<ListEvent, void>;
  /** The cost of an item, without what its frames read. */
  units: number;
  /** True when the frames of items read more. */
  readsMore: boolean;
  /**
   * Identifies `framesOf` for all subscribers whose frames are the same;
   * undefined when they depend on the caller.
   */
  shareKey?: unknown;
  /**
   * @returns undefined when it fails now and may succeed later: the client
   *   resumes before these items
   */
  framesOf(items: ListEvent['items']): Frames | Promise<Frames>;
  /** @returns the failure that ends the stream, as JSON */
  failureAsJson(failure: StoreError): string;
}

/**
 * How often (ms) keys, ages and unsent bytes are checked. A look-up is cached
 * for 900 ms (authenticator.ts): a revoked key ends within a second.
 */
const tickInterval = 50;

/** The open subscriptions of this process. */
class Subscriptions {
  /** Number of items sent so far. */
  delivered = 0;
  /** Those that subscribe, until their responses are closed. */
  readonly #places = new Set<FastifyRequest>();
  readonly #streams = new Map<FastifyRequest, EventStream>();
  readonly #checkKey;
  #timer: NodeJS.Timeout | undefined;
  /** Settles when the previous frames are made. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    keys: Authenticator,
    private readonly limits: Config['subscriptions'],
    private readonly unread: Unread,
  ) {
    this.#checkKey = keyChecks(keys, this.#streams);
  }

  get count() {
    return this.#streams.size;
  }

  /**
   * Opens a subscription.
   *
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many;
   *   SERVICE_UNAVAILABLE when the process has too many, or is shutting down;
   *   Unavailable
   */
  async open(
    request: FastifyRequest,
    { raw: response }: FastifyReply,
    feed: Feed,
  ) {
    const { format, batches } = feed;
    const { call } = request;
    assertPlace(request, this.#places, this.limits);
    this.#places.add(request);
    response.once('close', () => {
      this.#places.delete(request);
      this.#streams.delete(request);
    });
    const { value } = await batches.next();
    const refusal = refusalOf(request, this.#places);
    if (refusal) {
      // Nothing else would close the subscription.
      await batches.return();
      throw refusal;
    }
    call.streamedAfter = performance.now() - call.arrived;
    const stream = new EventStream(response, {
      format,
      start: (value as ListEvent).position,
      batches,
      write: ({ items }) => this.#write(items, request, feed),
      failureAsJson: (cause) =>
        feed.failureAsJson(toLoggedFailure(cause, request)),
    });
    this.#streams.set(request, stream);
    this.#timer ??= setInterval(() => this.#tick(), tickInterval).unref();
    return stream;
  }

  /**
   * Charges items to the quota and yields their frames. Without frames it cuts
   * the subscription. Frames that read are made one item at a time, so that a
   * client that does not read holds one item.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async *#write(
    page: ListEvent['items'],
    request: FastifyRequest,
    feed: Feed,
  ): AsyncGenerator<Buffer, void> {
    const { call } = request;
    const { meter } = call;
    const parts = feed.readsMore ? page.map((item) => [item]) : [page];
    for (const items of parts) {
      const frames = await this.#make(items, request, feed);
      if (!frames) {
        if (this.unread.isOver(request)) call.cut = 'unread';
        return this.#streams.get(request)?.cut();
      }
      await meter?.charge(items.length * feed.units);
      call.items += items.length;
      this.delivered += items.length;
      yield frames;
    }
  }

  /**
   * Makes frames. Those that read nothing take turns, because all subscriptions
   * read at the same moment. Unsent bytes are counted before more are made.
   *
   * @returns undefined when they cannot be made, too much is unsent, or the
   *   client has left
   */
  async #make(
    items: ListEvent['items'],
    request: FastifyRequest,
    { readsMore, shareKey, framesOf }: Feed,
  ): Promise<Frames> {
    const making = this.#turn.then(() => {
      if (!this.#mayWrite(request)) return undefined;
      return shareKey === undefined
        ? framesOf(items)
        : serialiseOnce(items, shareKey, framesOf);
    });
    if (!readsMore)
      this.#turn = making.then(afterLargeFrame).catch(() => undefined);
    const frames = await making;
    const response = this.#streams.get(request)?.response;
    if (frames && response) {
      const before = this.unread.heldBy(response);
      this.unread.set(request, response, before + frames.length);
    }
    return frames;
  }

  /**
   * False when the client has left while others took their turns, or has too
   * much unsent.
   */
  #mayWrite(request: FastifyRequest) {
    if (!this.#places.has(request)) return false;
    if (this.unread.isOver(request)) this.#countUnsent();
    return !this.unread.isOver(request);
  }

  /** Cuts all subscriptions. */
  async close() {
    if (this.count === 0) return;
    for (const stream of this.#streams.values()) stream.cut();
    await sleep(silenceBeforeCut);
  }

  #countUnsent() {
    for (const [request, { response }] of this.#streams)
      this.unread.set(request, response, response.writableLength);
  }

  #tick() {
    this.#countUnsent();
    for (const [request, stream] of this.#streams) {
      const { response, openedAt } = stream;
      const isOld = performance.now() - openedAt > this.limits.life;
      const isSlow = response.writableLength > 0 && this.unread.isOver(request);
      if (isOld || isSlow) {
        this.unread.set(request, response, 0);
        if (isSlow) request.call.cut = 'unread';
        stream.cut();
      } else stream.keepAlive();
      void this.#checkKey(request);
    }
    // What was cut is in memory until its connection is closed.
    this.#countUnsent();
    if (this.#places.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** A large frame is in its socket before the next one is made. */
const afterLargeFrame = (frames: Frames) =>
  frames && frames.length > largeBodyBytes ? nextTurn() : undefined;

/** Sends a stream; to HEAD only its headers, and it ends with the response. */
export function sendStream(
  { method }: FastifyRequest,
  reply: FastifyReply,
  stream: EventStream,
) {
  reply.headers(streamHeaders).type(stream.source.format.mediaType);
  return reply.send(method === 'HEAD' ? Readable.from([]) : stream.body());
}

/**
 * The id of the last event that the client has received (WHATWG HTML, section
 * 9.2.4).
 *
 * @throws StoreError BAD_USER_INPUT
 */
export function lastEventIdOf({ headers }: FastifyRequest): Int64 | undefined {
  const { 'last-event-id': text } = headers;
  // An empty one is none.
  if (!text) return undefined;
  const id = int64FromText(text);
  if (id !== undefined) return id;
  throw badInput(
    `Last-Event-ID must be an integer between ${int64.min} and ${int64.max}.`,
  );
}

/** Cuts subscriptions at shutdown, so that the drain does not wait for them. */
export function subscriptions(
  app: FastifyInstance,
  keys: Authenticator,
  limits: Config['subscriptions'],
) {
  const open = new Subscriptions(keys, limits, app.unread);
  app.decorate('subscriptions', open);
  app.addHook('preClose', () => open.close());
}
