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

/** Charges the operations of one request one after another, like separate requests. */
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
   * Runs an operation, which costs one unit plus one per item that it reads or writes.
   *
   * @param mayCost its maximum cost, charged in advance so that concurrent operations cannot spend the same units; the
   *   unused rest is returned
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
   * Charges the maximum cost of an operation.
   *
   * @returns a function that returns the unused rest
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async begin(mayCost: number): Promise<() => Promise<void>> {
    const before = this.#count.items;
    const settle = await this.#take(mayCost);
    return async () => {
      this.state = (await settle(mayCost - 1 - (this.#count.items - before))) ?? this.state;
    };
  }

  /** Charges units directly. @throws StoreError TOO_MANY_REQUESTS */
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
    /** The meter of the request; null without a quota. */
    meter: Meter | null;
    settle: (() => Promise<void>) | null;
  }
  interface FastifyContextConfig {
    /** True for a route that costs nothing or charges its work itself. */
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

/** Creates a meter per request, and reports the remaining quota on every charged response. */
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
      // Even if GraphQL resolved other fields, so that clients notice an exceeded quota.
      if (refusal) reply.code(refusal.status).headers(refusal.headers);
    });
  },
  { name: 'meter', dependencies: ['bearer'] },
);
