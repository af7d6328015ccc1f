import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError, tryAgain } from '../../errors.ts';
import { type EventStream, silenceBeforeCut } from './event-stream.ts';

declare module 'fastify' {
  interface FastifyInstance {
    subscriptions: Subscriptions;
  }
}

export interface SubscriptionsOptions {
  /** Maximum number of open subscriptions in this process, and of one key. */
  max: number;
  perKey: number;
  /** Maximum duration (ms) of a subscription. Then it is cut, and its client resumes, perhaps at another node. */
  life: number;
  /** Checks the key of a request again. @throws StoreError UNAUTHENTICATED and others */
  authenticate(request: FastifyRequest): Promise<unknown>;
}

/** How often (ms) keys are checked. A look-up is cached for 900 ms (authenticator.ts): together less than a second. */
const interval = 50;
/** Limit for all bytes that clients have not taken yet. Each subscription alone holds at most 64 KiB and one page. */
const maxUnsentBytes = 128 * 1024 * 1024;

/** The open subscriptions of this process. */
export class Subscriptions {
  /** The number of items that were sent so far. */
  delivered = 0;
  readonly #options: SubscriptionsOptions;
  /** Without a stream as long as the subscription is being opened. */
  readonly #open = new Map<FastifyRequest, EventStream | undefined>();
  /** The `Authorization` headers that are being checked. */
  readonly #checking = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#streams().length;
  }

  /**
   * Reserves a place until the response is closed.
   *
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many; SERVICE_UNAVAILABLE when the process has too many, or
   *   is shutting down
   */
  admit(request: FastifyRequest, response: { once(event: 'close', done: () => void): unknown }): void {
    const { max, perKey } = this.#options;
    if (request.server.isDraining) throw tryAgain('The service is shutting down; subscribe again shortly.');
    if (this.#open.size >= max) throw tryAgain('Too many subscriptions are open; try again shortly.');
    const ofKey = [...this.#open.keys()].filter(({ caller }) => caller?.id === request.caller?.id);
    if (ofKey.length >= perKey) throw tooMany(perKey);
    if (request.raw.socket.destroyed) throw tryAgain('The client has disconnected.');
    this.#open.set(request, undefined);
    response.once('close', () => this.#release(request));
  }

  add(stream: EventStream, request: FastifyRequest): void {
    this.#open.set(request, stream);
    this.#timer ??= setInterval(() => this.#look(), interval).unref();
  }

  /** Cuts all subscriptions. */
  async close(): Promise<void> {
    if (this.count === 0) return;
    for (const [, stream] of this.#streams()) stream.cut();
    await sleep(silenceBeforeCut);
  }

  #streams(): Array<[FastifyRequest, EventStream]> {
    return [...this.#open].filter((one): one is [FastifyRequest, EventStream] => one[1] !== undefined);
  }

  #release(request: FastifyRequest): void {
    this.#open.delete(request);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = performance.now();
    const callers = new Map<string, FastifyRequest>();
    let unsentBytes = 0;
    for (const [request, stream] of this.#streams()) {
      unsentBytes += stream.unsentBytes;
      const isOver = now - stream.openedAt > this.#options.life;
      if (isOver || (unsentBytes > maxUnsentBytes && stream.unsentBytes > 0)) stream.cut();
      else stream.keepAlive();
      callers.set(`${request.headers.authorization}`, request);
    }
    for (const [authorization, request] of callers) void this.#check(authorization, request);
  }

  /** Checks a key once for all its subscriptions. While the database is unavailable, nothing is sent either. */
  async #check(authorization: string, request: FastifyRequest): Promise<void> {
    if (this.#checking.has(authorization)) return;
    this.#checking.add(authorization);
    request.call.restart();
    try {
      await this.#options.authenticate(request);
    } catch (error) {
      if (error instanceof StoreError && error.code === 'UNAUTHENTICATED') this.#endAll(authorization, error);
    }
    this.#checking.delete(authorization);
  }

  #endAll(authorization: string, error: StoreError): void {
    for (const [{ headers }, stream] of this.#streams()) if (headers.authorization === authorization) stream.end(error);
  }
}

function tooMany(perKey: number): StoreError {
  const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
  return new StoreError('TOO_MANY_REQUESTS', message, { headers: { 'retry-after': '5' } });
}

/** Cuts subscriptions when the service ends: its drain must not wait for them. */
export const subscriptions = fastifyPlugin<SubscriptionsOptions>(
  async (app: FastifyInstance, options) => {
    const open = new Subscriptions(options);
    app.decorate('subscriptions', open);
    app.addHook('preClose', () => open.close());
  },
  { name: 'subscriptions', dependencies: ['bearer', 'meter'] },
);
