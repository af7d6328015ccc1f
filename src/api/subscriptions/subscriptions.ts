import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError, tryAgain } from '../../errors.ts';
import type { MemoryBudget } from '../http/memory-budget.ts';
import { type EventStream, silenceBeforeCut } from './event-stream.ts';

declare module 'fastify' {
  interface FastifyInstance {
    subscriptions: Subscriptions;
  }
}

export interface SubscriptionsOptions {
  /** Maximum number of open subscriptions, in this process and per key. */
  max: number;
  perKey: number;
  /** Maximum duration (ms) of a subscription. Then it is cut, and the client resumes, perhaps at another node. */
  life: number;
  /** Checks the key of a request again. @throws StoreError UNAUTHENTICATED and others */
  authenticate(request: FastifyRequest): Promise<unknown>;
}

/** How often (ms) keys are checked. Look-ups are cached for 900 ms (authenticator.ts); both together take under a second. */
const interval = 50;

/** The open subscriptions of this process. */
export class Subscriptions {
  /** Number of items sent so far. */
  delivered = 0;
  readonly #options: SubscriptionsOptions;
  readonly #unsent: MemoryBudget;
  /** The subscriptions; `stream` is undefined while one is being opened. */
  readonly #open = new Map<FastifyRequest, EventStream | undefined>();
  /** The `Authorization` headers that are being checked. */
  readonly #checking = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #unsentBytes = 0;

  constructor(options: SubscriptionsOptions, unsent: MemoryBudget) {
    this.#options = options;
    this.#unsent = unsent;
  }

  get count(): number {
    return this.#streams().length;
  }

  /**
   * Reserves a slot until the response is closed.
   *
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many; SERVICE_UNAVAILABLE when the process has too many, or
   *   is shutting down
   */
  admit(request: FastifyRequest, response: ServerResponse): void {
    const { max, perKey } = this.#options;
    if (request.server.isDraining) throw tryAgain('The service is shutting down; subscribe again shortly.');
    if (this.#open.size >= max) throw tryAgain('Too many subscriptions are open; try again shortly.');
    const ofKey = [...this.#open.keys()].filter(({ caller }) => caller?.id === request.caller?.id);
    if (ofKey.length >= perKey) {
      const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
      throw new StoreError('TOO_MANY_REQUESTS', message, { headers: { 'retry-after': '5' } });
    }
    if (request.raw.socket.destroyed) throw tryAgain('The client has disconnected.');
    this.#open.set(request, undefined);
    response.once('close', () => this.#open.delete(request));
  }

  add(stream: EventStream, request: FastifyRequest): void {
    this.#open.set(request, stream);
    this.#timer ??= setInterval(() => this.#checkKeys(), interval).unref();
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

  #checkKeys(): void {
    const streams = this.#streams();
    const unsentBytes = streams.reduce((sum, [, stream]) => sum + stream.unsentBytes, 0);
    let excess = this.#unsent.recount(this.#unsentBytes, unsentBytes);
    this.#unsentBytes = unsentBytes;
    for (const [request, stream] of streams) {
      const isOver = performance.now() - stream.openedAt > this.#options.life;
      if (isOver || (excess > 0 && stream.unsentBytes > 0)) {
        excess -= stream.unsentBytes;
        stream.cut();
      } else stream.keepAlive();
      void this.#check(request);
    }
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Checks a key once for all its subscriptions. While the database is unavailable, they stay open and get no items. */
  async #check(request: FastifyRequest): Promise<void> {
    const authorization = `${request.headers.authorization}`;
    if (this.#checking.has(authorization)) return;
    this.#checking.add(authorization);
    request.call.restart();
    try {
      await this.#options.authenticate(request);
    } catch (error) {
      const isRefused = error instanceof StoreError && error.code === 'UNAUTHENTICATED';
      const ofKey = this.#streams().filter(([{ headers }]) => isRefused && headers.authorization === authorization);
      for (const [, stream] of ofKey) stream.end(error);
    }
    this.#checking.delete(authorization);
  }
}

/** Cuts subscriptions at shutdown, so that the drain does not wait for them. */
export const subscriptions = fastifyPlugin<SubscriptionsOptions>(
  async (app: FastifyInstance, options) => {
    const open = new Subscriptions(options, app.unsent);
    app.decorate('subscriptions', open);
    app.addHook('preClose', () => open.close());
  },
  { name: 'subscriptions', dependencies: ['bearer', 'meter', 'lifecycle'] },
);
