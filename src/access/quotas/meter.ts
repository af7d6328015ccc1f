import type { FastifyInstance, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { TObject } from 'typebox';
import type { StoreError } from '../../errors.ts';
import { mostItems } from '../../storage/input/page.ts';
import { type Quota, type QuotaState, rateLimitHeaders, type Settle } from './quota.ts';

/** Counts the items that a request has read or written so far. */
interface ItemCount {
  readonly items: number;
}

/** Charges the operations of one request one after the other, as if each had come alone. */
export class Meter {
  /** The quota after the last operation; undefined before the first. */
  state: QuotaState | undefined;
  /** Set when an operation was rejected. */
  refusal: StoreError | undefined;
  readonly #quota: Quota;
  readonly #keyId: number;
  readonly #count: ItemCount;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(quota: Quota, keyId: number, count: ItemCount) {
    this.#quota = quota;
    this.#keyId = keyId;
    this.#count = count;
  }

  /**
   * Runs an operation, which costs one, and one for every item that it reads or writes.
   *
   * @param mayCost its maximum cost. It is taken in advance, so that concurrent operations cannot spend the same units;
   *   the unused rest is given back.
   * @throws StoreError TOO_MANY_REQUESTS
   */
  run<Result>(mayCost: number, operation: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(async () => {
      const settle = await this.begin(mayCost);
      return operation().finally(settle);
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /**
   * Takes the maximum cost of an operation.
   *
   * @returns a function that gives back the rest.
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async begin(mayCost: number): Promise<() => Promise<void>> {
    const before = this.#count.items;
    const settle = await this.#take(mayCost);
    return async () => {
      this.state = (await settle(mayCost - 1 - (this.#count.items - before))) ?? this.state;
    };
  }

  /** Charges work that is done elsewhere. @throws StoreError TOO_MANY_REQUESTS */
  async take(units: number): Promise<void> {
    const settle = await this.#take(units);
    await settle(0);
  }

  async #take(units: number): Promise<Settle> {
    const { state, settle } = await this.#quota.take(this.#keyId, units).catch((refusal: StoreError) => {
      this.refusal = refusal;
      throw refusal;
    });
    this.state = state;
    return settle;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Charges what the request does; null when there is no quota. */
    meter: Meter | null;
    settle: (() => Promise<void>) | null;
  }
  interface FastifyContextConfig {
    /** Costs nothing, or charges its work itself. All other routes that need a key are charged. */
    isUnmetered?: boolean;
  }
}

/** Charges a REST request its maximum cost before its handler runs. */
export function quotaHooks({ config, schema }: RouteOptions): { preValidation?: preValidationHookHandler } {
  if (config?.public || config?.isUnmetered) return {};
  const isList = 'limit' in ((schema?.querystring as TObject | undefined)?.properties ?? {});
  return {
    preValidation(request, _reply, done) {
      if (!request.meter) return done();
      const { limit } = request.query as { limit?: unknown };
      request.meter.begin(isList ? 1 + mostItems(limit) : 2).then((settle) => {
        request.settle = settle;
        done();
      }, done);
    },
  };
}

/** Gives each caller a meter, and reports the remaining quota on every charged response. */
export const meter = fastifyPlugin<{ quota: Quota | undefined }>(
  async (app: FastifyInstance, { quota }) => {
    app.decorateRequest('meter', null).decorateRequest('settle', null);
    if (!quota) return;
    app.addHook('onRequest', (request: FastifyRequest, _reply, done) => {
      if (request.caller) request.meter = new Meter(quota, request.caller.id, request.call);
      done();
    });
    app.addHook('onSend', async (request, reply) => {
      await request.settle?.();
      const { state, refusal } = request.meter ?? {};
      if (state) reply.headers(rateLimitHeaders(state));
      // Also when GraphQL has resolved other fields: a client over its quota must notice.
      if (refusal) reply.code(refusal.status).headers(refusal.headers);
    });
  },
  { name: 'meter', dependencies: ['bearer'] },
);
