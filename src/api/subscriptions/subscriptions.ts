import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { EventStream, silenceBeforeCut } from '@animal-store/graphql-http/event-stream';
import { type StreamFormat, serverSentEvents } from '@animal-store/graphql-http/format';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import {
  createSourceEventStream,
  execute,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { StoreError, serviceUnavailable, storeErrorOf } from '../../errors.ts';
import type { ListEvent } from '../../records/live-list.ts';
import { serialiseOnce } from '../../records/shared-items.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import { executionOptions } from '../graphql/apollo.ts';
import { formatError, logErrors } from '../graphql/format-error.ts';
import type { GraphQLContext, Operation } from '../graphql/operation.ts';
import { toLoggedFailure } from '../http/failures.ts';
import { largeBodyBytes, type MemoryBudget } from '../http/memory-budget.ts';

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

interface Subscription {
  schema: GraphQLSchema;
  operation: Operation;
  variables: Record<string, unknown>;
  context: GraphQLContext;
  format: StreamFormat;
  /** True when no field below the root has a resolver. */
  isFlat: boolean;
  /** The cost of an item, without what fields below the root read. */
  units: number;
  observers: readonly OperationObserver[];
}

/**
 * How often (ms) keys, ages and unsent bytes are checked. A look-up is cached for 900 ms (authenticator.ts): a revoked
 * key ends within a second.
 */
const interval = 50;

/** The open subscriptions of this process. */
export class Subscriptions {
  /** Number of items sent so far. */
  delivered = 0;
  /** The subscriptions; `stream` is undefined while one is being opened. */
  readonly #open = new Map<FastifyRequest, EventStream | undefined>();
  /** The `Authorization` headers that are being checked. */
  readonly #checking = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** In `unsent`: the bytes of the last count, and of all frames since. */
  #unsentBytes = 0;
  /** Ends when the frames before have been made. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly options: SubscriptionsOptions,
    private readonly unsent: MemoryBudget,
  ) {}

  get count(): number {
    return this.#streams().length;
  }

  /**
   * Opens a subscription.
   *
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many; SERVICE_UNAVAILABLE when the process has too many,
   *   or is shutting down
   */
  async open(subscription: Subscription): Promise<{ stream: EventStream } | { errors: readonly GraphQLError[] }> {
    const { schema, operation, variables, context, format, observers } = subscription;
    const { request, reply, call } = context;
    this.#reserveSlot(request, reply.raw);
    const source = await createSourceEventStream({
      schema,
      document: operation.document,
      operationName: operation.name,
      variableValues: variables,
      contextValue: context,
      options: executionOptions,
    });
    if (!(Symbol.asyncIterator in source)) {
      const { errors = [] } = source;
      // When a retry may succeed later, clients of event streams need a status, not an event.
      const failures = errors.map(({ originalError }) => storeErrorOf(originalError));
      const temporary = failures.find((failure) => failure?.headers['retry-after'] !== undefined);
      if (temporary) throw temporary;
      return { errors };
    }
    const batches = source as AsyncGenerator<ListEvent, void>;
    const { value } = await batches.next();
    // The client has left meanwhile, and nothing else would close the subscription.
    if (!this.#open.has(request)) {
      await batches.return();
      throw gone();
    }
    call.streamedAfter = performance.now() - call.arrived;
    let errors: GraphQLFormattedError[] | undefined;
    const stream = new EventStream<ListEvent>(reply.raw, {
      format,
      start: (value as ListEvent).position,
      batches,
      write: ({ items }) => this.#write(items, subscription, () => stream.cut()),
      explain(cause) {
        const failure = toLoggedFailure(cause, request);
        errors = [formatError(new GraphQLError(failure.message, { originalError: failure }))];
        return JSON.stringify(errors);
      },
    });
    reply.raw.once('close', () => {
      for (const observer of observers) observer.ended({ ...operation, call }, errors);
    });
    this.#open.set(request, stream);
    this.#timer ??= setInterval(() => this.#tick(), interval).unref();
    return { stream };
  }

  /** Reserves a slot until the response is closed. */
  #reserveSlot(request: FastifyRequest, response: ServerResponse): void {
    const { max, perKey } = this.options;
    if (request.server.isDraining) throw serviceUnavailable('The service is shutting down; subscribe again shortly.');
    if (this.#open.size >= max) throw serviceUnavailable('Too many subscriptions are open; try again shortly.');
    const ofKey = [...this.#open.keys()].filter(({ caller }) => caller?.id === request.caller?.id);
    if (ofKey.length >= perKey) {
      const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
      throw new StoreError('TOO_MANY_REQUESTS', message, { headers: { 'retry-after': '5' } });
    }
    if (request.raw.socket.destroyed) throw gone();
    this.#open.set(request, undefined);
    response.once('close', () => this.#open.delete(request));
  }

  /**
   * Charges items to the quota and yields the frames of their results. An operation with resolvers makes one item at a
   * time, so that a client that does not read holds one item. Other operations take turns, because all subscriptions
   * read at the same moment. Unsent bytes are counted before more are made; beyond the limit the subscription is cut.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async *#write(page: ListEvent['items'], subscription: Subscription, cut: () => void): AsyncGenerator<Buffer, void> {
    const { operation, isFlat, units, context, format } = subscription;
    const { meter } = context.request;
    const { call } = context;
    // Without resolvers and conditions, results do not depend on the caller or on variables, so subscribers share the
    // frames. Their key: the operation for events, its node for multipart.
    const key = format === serverSentEvents ? operation : operation.node;
    for (const items of isFlat ? [page] : page.map((item) => [item])) {
      await meter?.take(items.length * units);
      const before = call.items;
      const making = this.#turn.then(() => {
        // The client may have left while others took their turns.
        if (!this.#open.has(context.request)) return undefined;
        if (this.unsent.recount(0, 0) > 0 && this.#countUnsent() > 0) return undefined;
        const isShared = isFlat && !operation.hasDirectives;
        return isShared ? serialiseOnce(items, key, subscription, resultsOf) : resultsOf(items, subscription);
      });
      // A large frame is in its socket before the next one is made.
      if (isFlat) this.#turn = making.then(afterLargeFrames).catch(() => undefined);
      const frames = await making;
      if (!frames) return cut();
      this.unsent.recount(0, frames.length);
      this.#unsentBytes += frames.length;
      // Items read by fields below the root.
      if (call.items > before) await meter?.take(call.items - before);
      call.items += items.length;
      this.delivered += items.length;
      yield frames;
    }
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

  /** @returns the number of bytes beyond the limit */
  #countUnsent(): number {
    const before = this.#unsentBytes;
    this.#unsentBytes = this.#streams().reduce((sum, [, stream]) => sum + stream.unsentBytes, 0);
    return this.unsent.recount(before, this.#unsentBytes);
  }

  #tick(): void {
    let excess = this.#countUnsent();
    for (const [request, stream] of this.#streams()) {
      const isOver = performance.now() - stream.openedAt > this.options.life;
      if (isOver || (excess > 0 && stream.unsentBytes > 0)) {
        excess -= stream.unsentBytes;
        stream.cut();
      } else stream.keepAlive();
      void this.#checkKey(request);
    }
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Checks a key once for all its subscriptions. While the database is unavailable, they stay open and get no items.
   */
  async #checkKey(request: FastifyRequest): Promise<void> {
    const authorization = `${request.headers.authorization}`;
    if (this.#checking.has(authorization)) return;
    this.#checking.add(authorization);
    request.call.restart();
    try {
      await this.options.authenticate(request);
    } catch (error) {
      const isRefused = error instanceof StoreError && error.code === 'UNAUTHENTICATED';
      const ofKey = this.#streams().filter(([{ headers }]) => isRefused && headers.authorization === authorization);
      for (const [, stream] of ofKey) stream.end(error);
    }
    this.#checking.delete(authorization);
  }
}

async function afterLargeFrames(frames: Buffer | undefined): Promise<void> {
  if (frames && frames.length > largeBodyBytes) await nextTurn();
}

/** Executes an operation for each item. @returns the frames of the results */
async function resultsOf(items: readonly unknown[], subscription: Subscription): Promise<Buffer> {
  const { schema, operation, variables, context, format } = subscription;
  let frames = '';
  for (const item of items as ListEvent['items']) {
    const { data, errors } = await execute({
      schema,
      document: operation.document,
      operationName: operation.name,
      rootValue: item,
      variableValues: variables,
      contextValue: context,
    });
    if (errors) logErrors(errors, context.request);
    frames += format.next(JSON.stringify(errors ? { errors: errors.map(formatError), data } : { data }), item.id);
  }
  return Buffer.from(frames);
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

function gone(): StoreError {
  return serviceUnavailable('The client has disconnected.');
}
