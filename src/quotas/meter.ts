import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import { type Quota, type QuotaState, rateLimitHeaders, type Settle } from './quota.ts';

/** Charges the operations of one request, one after the other, as if each had come alone. */
export class Meter {
  /** After the last operation; undefined before the first. */
  state: QuotaState | undefined;
  /** Set when an operation was refused. */
  refusal: StoreError | undefined;
  readonly #quota: Quota;
  readonly #keyId: number;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(quota: Quota, keyId: number) {
    this.#quota = quota;
    this.#keyId = keyId;
  }

  /**
   * Runs an operation that costs one, and one for every item in its result.
   *
   * @param mayAnswer how many items that may be. They are paid for beforehand, so that operations which run side by side
   *   cannot spend the same units; what was too much is given back.
   * @throws StoreError TOO_MANY_REQUESTS
   */
  run<Result>(mayAnswer: number, operation: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(() => this.#charged(mayAnswer, operation));
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Charges what is done elsewhere. @throws StoreError TOO_MANY_REQUESTS */
  take(units: number): Promise<unknown> {
    return this.run(units - 1, async () => ({ items: units - 1 }));
  }

  async #charged<Result>(mayAnswer: number, operation: () => Promise<Result>): Promise<Result> {
    const settle = await this.#take(1 + mayAnswer);
    let answered = 0;
    try {
      const result = await operation();
      answered = animalsIn(result);
      return result;
    } finally {
      this.state = (await settle(mayAnswer - answered)) ?? this.state;
    }
  }

  async #take(units: number): Promise<Settle> {
    try {
      const { state, settle } = await this.#quota.take(this.#keyId, units);
      this.state = state;
      return settle;
    } catch (error) {
      if (error instanceof StoreError) this.refusal = error;
      throw error;
    }
  }
}

/** A list, a page, a connection, one animal, or none. */
function animalsIn(result: unknown): number {
  if (result === null || typeof result !== 'object') return 0;
  if (Array.isArray(result)) return result.length;
  const { pets, edges, items } = result as { pets?: unknown[]; edges?: unknown[]; items?: number };
  return items ?? (pets ?? edges)?.length ?? 1;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Charges what the request does; null when there is no quota. */
    meter: Meter | null;
  }
}

/** Runs an operation at the request's expense. @param mayAnswer how many items it may answer */
export function metered<Result>(
  { meter }: FastifyRequest,
  mayAnswer: number,
  operation: () => Promise<Result>,
): Promise<Result> {
  return meter ? meter.run(mayAnswer, operation) : operation();
}

export interface MeterOptions {
  quota: Quota | undefined;
}

/** Adds `request.meter`, and tells on every metered response how much is left. Register it after `bearer`. */
export const meter = fastifyPlugin<MeterOptions>(async (app: FastifyInstance, { quota }) => {
  app.decorateRequest('meter', null);
  if (!quota) return;
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.caller) request.meter = new Meter(quota, request.caller.id);
    done();
  });
  app.addHook('onSend', async (request, reply) => {
    const { state, refusal } = request.meter ?? {};
    if (state) reply.headers(rateLimitHeaders(state));
    // Also where GraphQL has answered other fields: who is over the quota must notice.
    if (refusal) reply.code(refusal.status).headers(refusal.headers);
  });
  app.addHook('onClose', () => quota.close());
});
