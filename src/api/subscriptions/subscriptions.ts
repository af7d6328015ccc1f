import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError, tryAgain } from '../../errors.ts';
import { breath, type EventStream } from './event-stream.ts';

declare module 'fastify' {
  interface FastifyInstance {
    subscriptions: Subscriptions;
  }
}

export interface SubscriptionLimits {
  /** How many may be open at a time, in this process: in all, and of one key. */
  max: number;
  perKey: number;
  /** How long (ms) one lasts; then it is cut off, and its client resumes, perhaps at another node. */
  life: number;
}

export interface SubscriptionsOptions extends SubscriptionLimits {
  /** Looks at the key of a request again. @throws StoreError UNAUTHENTICATED and others */
  authenticate(request: FastifyRequest): Promise<unknown>;
}

/** How often (ms) keys are looked at. A look-up is believed for 900 ms (authenticator.ts), so both are under a second. */
const interval = 50;
/** How long (ms) a client may take to read that it is over. */
const patience = 1000;

/** The open subscriptions of this process. */
export class Subscriptions {
  /** How many items they have been sent, in all. */
  delivered = 0;
  readonly #options: SubscriptionsOptions;
  readonly #perKey = new Map<number, number>();
  #count = 0;
  readonly #open = new Map<EventStream, FastifyRequest>();
  readonly #checking = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.size;
  }

  /**
   * Counts one in, until its response is closed.
   *
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many; SERVICE_UNAVAILABLE when there are too many in all, or
   *   the service is about to end
   */
  admit({ caller, server, raw }: FastifyRequest, response: { once(event: 'close', done: () => void): unknown }): void {
    const { max, perKey } = this.#options;
    if (server.isDraining) throw tryAgain('The service is about to end; subscribe again shortly.');
    if (this.#count >= max) throw tryAgain('Too many subscriptions are open; try again shortly.');
    const keyId = caller?.id ?? 0;
    const ofKey = this.#perKey.get(keyId) ?? 0;
    if (ofKey >= perKey) throw tooMany(perKey);
    if (raw.socket.destroyed) throw tryAgain('The client has gone.');
    this.#count += 1;
    this.#perKey.set(keyId, ofKey + 1);
    response.once('close', () => this.#release(keyId));
  }

  add(stream: EventStream, request: FastifyRequest): void {
    this.#open.set(stream, request);
    stream.once('close', () => this.#remove(stream));
    this.#timer ??= setInterval(() => this.#look(), interval).unref();
  }

  /** Cuts all of them off. */
  async close(): Promise<void> {
    if (this.#open.size === 0) return;
    for (const stream of this.#open.keys()) stream.cut();
    await sleep(breath);
  }

  #release(keyId: number): void {
    this.#count -= 1;
    const left = (this.#perKey.get(keyId) ?? 0) - 1;
    if (left > 0) this.#perKey.set(keyId, left);
    else this.#perKey.delete(keyId);
  }

  #remove(stream: EventStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = performance.now();
    const seen = new Set<string>();
    for (const [stream, request] of this.#open) {
      if (now - stream.bornAt > this.#options.life || now - (stream.endsSince ?? now) > patience) stream.cut();
      stream.breathe(now);
      const { authorization = '' } = request.headers;
      if (seen.has(authorization)) continue;
      seen.add(authorization);
      void this.#check(authorization, request);
    }
  }

  /** One look-up for all subscriptions with this secret. While the database is away, nothing is sent either. */
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
    for (const [stream, { headers }] of this.#open) if (headers.authorization === authorization) stream.end(error);
  }
}

function tooMany(perKey: number): StoreError {
  const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
  return new StoreError('TOO_MANY_REQUESTS', message, { headers: { 'retry-after': '5' } });
}

/** Cuts subscriptions off when the service ends: its drain must not wait for them. */
export const subscriptions = fastifyPlugin<SubscriptionsOptions>(
  async (app: FastifyInstance, options) => {
    const open = new Subscriptions(options);
    app.decorate('subscriptions', open);
    app.addHook('preClose', () => open.close());
  },
  { name: 'subscriptions', dependencies: ['bearer', 'meter'] },
);
