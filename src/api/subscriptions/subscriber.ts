import type { GraphQLRequest, GraphQLResponse } from '@apollo/server';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import type { Addition } from '../../storage/records/live-list.ts';
import { formatted, logErrors } from '../graphql/errors.ts';
import type { Events, GraphQLContext } from '../graphql/request.ts';
import { observedOperation } from '../graphql/selections.ts';
import { logFailure, toStoreError } from '../http/errors.ts';
import { EventStream } from './event-stream.ts';

export interface SubscriberOptions {
  schema: GraphQLSchema;
  observers: readonly OperationObserver[];
  /** Completes what graphql-js returns. */
  toResponse(result: ExecutionResult): GraphQLResponse;
}

/** A subscription that Apollo Server has parsed, validated and resolved. */
interface Subscription {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  request: GraphQLRequest;
  contextValue: GraphQLContext;
}

type Items = Addition['items'];

/** Opens subscriptions and writes their results. */
export class Subscriber {
  readonly #options: SubscriberOptions;
  /** Whether the results of an operation are the same for all its subscribers. */
  readonly #isShared = new WeakMap<OperationDefinitionNode, boolean>();
  /** The frames of items that subscribers of the same operation share. */
  readonly #written = new WeakMap<Items, Map<OperationDefinitionNode, Promise<Buffer>>>();

  constructor(options: SubscriberOptions) {
    this.#options = options;
  }

  /** Leaves the stream, or a refusal that has an HTTP status, in `events`. @returns the errors, or an empty response */
  async open(subscription: Subscription, events: Events): Promise<GraphQLResponse> {
    const { request, reply, call } = subscription.contextValue;
    const { toResponse } = this.#options;
    try {
      request.server.subscriptions.admit(request, reply.raw);
      const source = await this.#subscribe(subscription);
      if (!(Symbol.asyncIterator in source)) {
        const { errors = [] } = source;
        logErrors(errors, request);
        events.refusal = errors.map(({ originalError }) => originalError as StoreError | undefined).find(mayPass);
        return toResponse({ errors });
      }
      const additions = source as AsyncGenerator<Addition, void>;
      const { value } = await additions.next();
      call.streamedAfter = performance.now() - call.arrived;
      events.stream = this.#stream(subscription, events, additions, (value as Addition).position);
      request.server.subscriptions.add(events.stream, request);
      return toResponse({});
    } catch (error) {
      const refusal = toStoreError(error);
      events.refusal = refusal;
      return toResponse({ errors: [new GraphQLError(refusal.message, { originalError: refusal })] });
    }
  }

  #subscribe({ document, request, contextValue }: Subscription) {
    return createSourceEventStream({
      schema: this.#options.schema,
      document,
      operationName: request.operationName,
      variableValues: request.variables,
      contextValue,
      // Every error about a variable repeats the whole input, so a few are enough.
      options: { maxCoercionErrors: 5 },
    });
  }

  #stream(subscription: Subscription, { framing }: Events, additions: AsyncIterator<Addition, void>, start: Int64) {
    const { document, operation, contextValue } = subscription;
    const { call, request, reply } = contextValue;
    let errors: GraphQLFormattedError[] | undefined;
    let charged = call.items;
    reply.raw.once('close', () => {
      for (const one of this.#options.observers) one.ended(observedOperation(document, operation, call), errors);
    });
    return new EventStream({
      start,
      additions,
      framing,
      response: reply.raw,
      write: async (items) => {
        // With what fields below the root have read for earlier items.
        const total = call.items + items.length;
        await request.meter?.take(total - charged);
        charged = total;
        const frames = await this.#write(items, subscription, framing);
        call.items += items.length;
        request.server.subscriptions.delivered += items.length;
        return frames;
      },
      writeFailure: (cause) => {
        const failure = toStoreError(cause);
        logFailure(failure, request);
        call.code ??= failure.code;
        const error = new GraphQLError(failure.message, { originalError: failure });
        errors = [formatted(error)];
        return JSON.stringify({ errors });
      },
    });
  }

  #write(items: Items, subscription: Subscription, framing: Events['framing']): Promise<Buffer> {
    const { document, operation } = subscription;
    const isShared = this.#isShared.get(operation) ?? hasSharedResults(this.#options.schema, document);
    this.#isShared.set(operation, isShared);
    if (!isShared) return this.#execute(items, subscription, framing);
    const ofItems = this.#written.get(items) ?? new Map<OperationDefinitionNode, Promise<Buffer>>();
    this.#written.set(items, ofItems);
    const frames = ofItems.get(operation) ?? this.#execute(items, subscription, framing);
    ofItems.set(operation, frames);
    return frames;
  }

  async #execute(items: Items, subscription: Subscription, framing: Events['framing']): Promise<Buffer> {
    const { document, request, contextValue } = subscription;
    const { schema } = this.#options;
    const { operationName, variables: variableValues } = request;
    let frames = '';
    for (const rootValue of items) {
      const run = { schema, document, operationName, variableValues, contextValue, rootValue };
      const { data, errors } = await execute(run);
      if (errors) logErrors(errors, contextValue.request);
      const result = errors ? { errors: errors.map(formatted), data } : { data };
      frames += framing.next(JSON.stringify(result), rootValue.id);
    }
    return Buffer.from(frames);
  }
}

/** True when nothing below the root field depends on the caller or on variables: no resolver, argument or directive. */
function hasSharedResults(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let isShared = true;
  const visitor = visitWithTypeInfo(types, {
    Directive: () => {
      isShared = false;
    },
    Field: ({ name }) => {
      if (types.getParentType() === schema.getSubscriptionType() || name.value === '__typename') return;
      const field = types.getFieldDef();
      if (!field || field.resolve || field.args.length > 0) isShared = false;
    },
  });
  visit(document, visitor);
  return isShared;
}

/** True if a retry may succeed later: clients of event streams need a status for that, not an event. */
function mayPass(error: StoreError | undefined): boolean {
  return error?.headers?.['retry-after'] !== undefined;
}
