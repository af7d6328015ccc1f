import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import {
  createSourceEventStream,
  execute,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { storeErrorOf } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import { serialiseOnce } from '../../storage/input/page.ts';
import type { Addition } from '../../storage/records/live-list.ts';
import { executionOptions } from '../graphql/apollo.ts';
import type { Operation } from '../graphql/documents.ts';
import type { GraphQLContext } from '../graphql/request.ts';
import { formatError, logErrors } from '../graphql/response.ts';
import { fail } from '../http/failures.ts';
import { type StreamFormat, serverSentEvents, streamHeaders } from './stream-format.ts';

/** Pause (ms) without writes before a connection is cut. */
export const silenceBeforeCut = 100;
/** Heartbeat interval (ms) without results. Some proxies close connections that are idle for 15 s. */
export const heartbeatInterval = 10_000;

interface Subscription {
  schema: GraphQLSchema;
  operation: Operation;
  variables: Record<string, unknown>;
  context: GraphQLContext;
  format: StreamFormat;
  /** True when no field below the root has a resolver. */
  isFlat: boolean;
  observers: readonly OperationObserver[];
}

/** Opens a subscription. @throws StoreError */
export async function openStream(
  subscription: Subscription,
): Promise<{ stream: EventStream } | { errors: readonly GraphQLError[] }> {
  const { schema, operation, variables, context } = subscription;
  const { request, reply, call } = context;
  const { subscriptions } = request.server;
  subscriptions.admit(request, reply.raw);
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
  const additions = source as AsyncGenerator<Addition, void>;
  const { value } = await additions.next();
  call.streamedAfter = performance.now() - call.arrived;
  const stream = new EventStream(subscription, additions, (value as Addition).position);
  subscriptions.add(stream, request);
  return { stream };
}

/**
 * The response of one subscription. It reads the list only after the client has received the last page, so a slow client
 * holds one page and no queue.
 */
export class EventStream {
  readonly openedAt = performance.now();
  readonly #subscription: Subscription;
  readonly #additions: AsyncIterator<Addition, void>;
  readonly #start: Int64;
  #failure: unknown;
  #errors: GraphQLFormattedError[] | undefined;
  #isCut = false;
  #wroteAt = performance.now();
  #wake = (): void => undefined;

  constructor(subscription: Subscription, additions: AsyncIterator<Addition, void>, start: Int64) {
    this.#subscription = subscription;
    this.#additions = additions;
    this.#start = start;
  }

  /** Disables reading ahead. */
  send(): FastifyReply {
    const { operation, observers, context, format } = this.#subscription;
    const { reply, request, call } = context;
    reply.headers(streamHeaders).type(format.mediaType);
    reply.raw.once('close', () => {
      this.#wake();
      void this.#additions.return?.();
      for (const observer of observers) observer.ended({ ...operation, call }, this.#errors);
    });
    if (request.method === 'HEAD') return reply.send();
    return reply.send(Readable.from(this.#frames(), { objectMode: false, highWaterMark: 0 }));
  }

  /** Number of bytes that the client has not received yet. */
  get unsentBytes(): number {
    return this.#subscription.context.reply.raw.writableLength;
  }

  /** Ends the stream with an error for the client. */
  end(failure: unknown): void {
    this.#failure ??= failure;
    this.#wake();
  }

  /**
   * Closes the connection without `complete`, so that the client resumes, perhaps at another node. It pauses first, because
   * graphql-sse's client does not resume directly after an event.
   */
  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#wake();
    setTimeout(() => this.#subscription.context.reply.raw.destroy(), silenceBeforeCut).unref();
  }

  /** Sends a heartbeat when it is due, even while the database is unavailable. */
  keepAlive(): void {
    if (this.#isSilent) this.#wake();
  }

  get #isSilent(): boolean {
    return performance.now() - this.#wroteAt >= heartbeatInterval;
  }

  async *#frames(): AsyncGenerator<string | Buffer, void> {
    const { context, format } = this.#subscription;
    const response = context.reply.raw;
    let nextAddition: Promise<IteratorResult<Addition, void>> | undefined;
    try {
      yield format.begin(this.#start);
      while (!response.destroyed) {
        if (this.#failure !== undefined) throw this.#failure;
        // Prevents the response from ending as if it were complete.
        if (this.#isCut) await new Promise((closed) => response.once('close', closed));
        nextAddition ??= this.#additions.next();
        const added = await Promise.race([nextAddition, this.#woken()]);
        if (added?.value) {
          nextAddition = undefined;
          yield this.#sent(await this.#write(added.value.items));
        } else if (this.#isSilent) yield this.#sent(format.heartbeat);
      }
    } catch (error) {
      yield this.#last(error);
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

  /** Charges items to the quota and writes their results. @throws StoreError TOO_MANY_REQUESTS */
  async #write(items: Addition['items']): Promise<Buffer> {
    const { operation, isFlat, context, format } = this.#subscription;
    const { meter, server } = context.request;
    const { call } = context;
    await meter?.take(items.length);
    const before = call.items;
    // Without resolvers and conditions, results do not depend on the caller or on variables, so subscribers share the
    // frames. The same operation in another format has another writer.
    const writer = format === serverSentEvents ? operation : operation.node;
    const frames = await (isFlat && !operation.hasDirectives
      ? serialiseOnce(items, writer, this.#subscription, resultsOf)
      : resultsOf(items, this.#subscription));
    // Items read by fields below the root.
    if (call.items > before) await meter?.take(call.items - before);
    call.items += items.length;
    server.subscriptions.delivered += items.length;
    return frames;
  }

  /** Sends the reason for the end of the subscription. */
  #last(cause: unknown): string {
    const { context, format } = this.#subscription;
    const failure = fail(cause, context.request);
    this.#errors = [formatError(new GraphQLError(failure.message, { originalError: failure }))];
    return format.fail(JSON.stringify(this.#errors)) + format.complete;
  }
}

/** Executes an operation for each item. @returns the frames of the results */
async function resultsOf(items: readonly unknown[], subscription: Subscription): Promise<Buffer> {
  const { schema, operation, variables, context, format } = subscription;
  let frames = '';
  for (const item of items as Addition['items']) {
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
