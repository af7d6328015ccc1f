import { type GraphQLRequest, type GraphQLResponse, HeaderMap } from '@apollo/server';
import type { FastifyRequest } from 'fastify';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import { formatted, logErrors } from '../graphql/errors.ts';
import type { GraphQLContext } from '../graphql/request.ts';
import { observedOperation } from '../graphql/selections.ts';
import { toStoreError } from '../http/errors.ts';
import { EventStream } from './event-stream.ts';
import type { EventWriter } from './event-writer.ts';
import type { Follower } from './live-list.ts';

export interface LiveOptions {
  schema: GraphQLSchema;
  writer: EventWriter;
  observers: readonly OperationObserver[];
  /** Completes what graphql-js returns. */
  toResponse(result: ExecutionResult): GraphQLResponse;
}

interface Subscription {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  request: GraphQLRequest;
  contextValue: GraphQLContext;
}

/** Every error about a variable repeats the whole input, so a few are enough. */
const options = { maxCoercionErrors: 5 };

/**
 * Opens subscriptions: what Apollo Server has parsed, validated and resolved. The stream is in the context then, and the
 * response is empty; or it has the errors.
 */
export class Live {
  readonly #options: LiveOptions;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  async open(subscription: Subscription): Promise<GraphQLResponse> {
    const { events, request, call } = subscription.contextValue;
    if (!events) return this.#refused(notAcceptable(), request);
    try {
      const source = await this.#sourceOf(subscription);
      if (!(Symbol.asyncIterator in source)) {
        const { errors = [] } = source;
        logErrors(errors, request);
        events.refusal = errors.map(({ originalError }) => originalError).find(mayPass);
        return this.#options.toResponse({ errors });
      }
      call.streamedAfter = performance.now() - call.arrived;
      events.stream = this.#streamOf(subscription, source as Follower<{ id: Int64 }>);
      request.server.subscriptions.add(events.stream, request);
      return this.#options.toResponse({});
    } catch (error) {
      const failure = toStoreError(error);
      if (mayPass(failure)) events.refusal = failure;
      return this.#refused(failure, request);
    }
  }

  #sourceOf({ document, request, contextValue }: Subscription) {
    contextValue.request.server.subscriptions.admit(contextValue.request, contextValue.reply.raw);
    return createSourceEventStream({
      schema: this.#options.schema,
      document,
      operationName: request.operationName,
      variableValues: request.variables,
      contextValue,
      options,
    });
  }

  #streamOf(subscription: Subscription, source: Follower<{ id: Int64 }>): EventStream {
    const { document, operation, request, contextValue: context } = subscription;
    const { writer, observers } = this.#options;
    const { meter, server, call } = context.request;
    return new EventStream({
      source,
      response: context.reply.raw,
      write: writer.of({ document, operation, variables: request.variables, context }),
      charge: async (items) => meter?.take(items),
      onSent(items) {
        call.items += items;
        server.subscriptions.delivered += items;
      },
      format(error) {
        const originalError = error as Error;
        const wrapped = new GraphQLError(originalError.message, { originalError });
        logErrors([wrapped], context.request);
        return formatted(wrapped);
      },
      onEnd(errors) {
        if (errors) call.code ??= `${errors[0]?.extensions?.code}`;
        for (const one of observers) one.ended(observedOperation(document, operation, call), errors);
      },
    });
  }

  #refused(failure: StoreError, request: FastifyRequest): GraphQLResponse {
    const error = new GraphQLError(failure.message, { originalError: failure });
    logErrors([error], request);
    const { body } = this.#options.toResponse({ errors: [error] });
    return { http: { status: failure.status, headers: new HeaderMap() }, body };
  }
}

function notAcceptable(): StoreError {
  return new StoreError('NOT_ACCEPTABLE', 'A subscription is answered with events: send `Accept: text/event-stream`.');
}

/** True for what says when it may be tried again: clients of event streams look at the status for that. */
function mayPass(error: Error | undefined): error is StoreError {
  return error instanceof StoreError && error.headers['retry-after'] !== undefined;
}
