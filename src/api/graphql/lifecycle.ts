import { type ApolloServerPlugin, type GraphQLRequestListener, type GraphQLResponse, HeaderMap } from '@apollo/server';
import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { DeprecatedFields } from '../../access/deprecations/fields.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { assertRepeatable } from '../../access/idempotency/mutations.ts';
import { idempotencyKey } from '../../access/idempotency/once.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import type { EventWriter } from '../subscriptions/event-writer.ts';
import { Live } from '../subscriptions/live.ts';
import type { GraphQLContext } from './context.ts';
import type { CostLimit } from './cost.ts';
import { formatted, logErrors, retryAfter } from './errors.ts';
import { type Executor, isSingleField } from './executor.ts';
import { fragmentIn } from './fragments.ts';
import { useReading } from './http.ts';
import { mediaTypes } from './media-types.ts';
import { observedOperation, rootFieldsOf } from './root-fields.ts';
import { statusOf } from './status.ts';
import { onlyQueries } from './words.ts';

export interface LifecycleOptions {
  schema: GraphQLSchema;
  /** Writes the events of subscriptions. */
  writer: EventWriter;
  cost: CostLimit;
  deprecated: DeprecatedFields;
  usage: DeprecationUsage;
  /** Executes what it can instead of graphql-js; undefined for none. */
  executor: Executor | undefined;
  observers: readonly OperationObserver[];
  formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError;
}

/** Apollo Server waits for every hook; a promise less is measurable. */
const done = Promise.resolve();

/** All our hooks into the life of an operation, in one plugin with one listener: Apollo Server awaits each of them. */
export function lifecycle(options: LifecycleOptions): ApolloServerPlugin<GraphQLContext> {
  const { cost, deprecated, usage, executor, observers } = options;
  const live = new Live({ ...options, toResponse: (result) => toResponse(result, options) });
  const listener: GraphQLRequestListener<GraphQLContext> = {
    didResolveOperation({ schema, document, operation, request, contextValue }) {
      if (!operation) return done;
      const fields = rootFieldsOf(operation, (name) => fragmentIn(document, name));
      contextValue.call.operation = { name: operation.name?.value, fields: fields.names };
      for (const one of observers) one.began(observedOperation(document, operation, contextValue.call));
      if (operation.operation === OperationTypeNode.MUTATION) assertPost(contextValue);
      if (hasKey(contextValue)) assertRepeatable(schema, document, operation);
      const { introspection } = cost.check(document, operation, request.variables ?? {});
      const { caller, request: incoming } = contextValue;
      const count = () => {
        if (!caller) return;
        for (const [coordinate, removal] of deprecated.in(document)) usage.called(caller, coordinate, removal);
      };
      if (introspection > 0 && incoming.meter) return incoming.meter.take(introspection).then(count);
      count();
      return done;
    },
    // Apollo Server's own extension point for executors is made for gateways: it creates objects per request that keep
    // the whole request from the scavenger (accessors in a literal, and so a hidden class per request).
    async responseForOperation({ document, operation, request, contextValue }) {
      if (operation?.operation === OperationTypeNode.SUBSCRIPTION) {
        return live.open({ document, operation, request, contextValue });
      }
      const { variables } = request;
      const result = await executor?.execute({ document, operation, variables, context: contextValue });
      if (!result) return null;
      if (result.errors) logErrors(result.errors, contextValue.request);
      return toResponse(result, options);
    },
    async didEncounterErrors({ errors, request, contextValue }) {
      // Of a document that was refused nothing is known but what the client says.
      contextValue.call.operation ??= { name: request.operationName, fields: undefined };
      logErrors(errors, contextValue.request);
    },
    willSendResponse({ response: { http, body }, source, document, operation, contextValue }) {
      // It goes on; its end is told then.
      if (contextValue.events?.stream) return done;
      const { mediaType } = contextValue;
      const { errors, data } = body.kind === 'single' ? body.singleResult : {};
      http.headers.set('content-type', mediaType);
      http.status = statusOf({
        mediaType,
        asked: http.status,
        failedAt: source === undefined ? 'request' : document ? undefined : 'document',
        hasData: data !== undefined,
        hasErrors: errors !== undefined,
      });
      if (errors) contextValue.call.code ??= `${errors[0]?.extensions?.code}`;
      if (contextValue.call.isReplay) http.headers.set('idempotent-replayed', 'true');
      if (document && operation) {
        for (const one of observers) one.ended(observedOperation(document, operation, contextValue.call), errors);
      }
      const mayRepeat = !errors || hasKey(contextValue) || isRepeatable(operation, errors);
      // The quota's 429 must not cause a retry either; the field's own error says how long to wait with that field.
      // Nor may it be the status of data, where the media type says that there are some.
      const isPartial = data != null && mediaType === mediaTypes.response;
      if ((!mayRepeat || isPartial) && contextValue.request.meter) contextValue.request.meter.refusal = undefined;
      const seconds = errors && mayRepeat ? retryAfter(errors) : 0;
      if (seconds > 0) http.headers.set('retry-after', `${seconds}`);
      return done;
    },
  };
  return {
    async requestDidStart({ request, contextValue }) {
      useReading(request, contextValue.reading);
      return listener;
    },
  };
}

/** Apollo Server does this itself, unless the client takes events (events.ts). */
function assertPost({ request: { method } }: GraphQLContext): void {
  if (method === 'POST') return;
  throw new GraphQLError(onlyQueries, {
    extensions: { http: { status: 405, headers: new HeaderMap([['allow', 'POST']]) } },
  });
}

function hasKey({ request }: GraphQLContext): boolean {
  return request.headers[idempotencyKey] !== undefined;
}

/** The first of several mutations may have been executed: a retry of the request would execute it twice. */
function isRepeatable(operation: OperationDefinitionNode | undefined, errors: readonly GraphQLFormattedError[]) {
  if (operation?.operation !== OperationTypeNode.MUTATION) return true;
  // An error without a path is about the operation: nothing of it has run.
  return isSingleField(operation) || errors.every(({ path }) => path === undefined);
}

const unchanged = { status: undefined, headers: new HeaderMap() };

/** Builds a response from graphql-js's result, as Apollo Server does. */
function toResponse({ data, errors }: ExecutionResult, { formatError }: LifecycleOptions): GraphQLResponse {
  const format = (error: GraphQLError) => formatted(error, formatError);
  return {
    http: unchanged,
    body: { kind: 'single', singleResult: errors ? { errors: errors.map(format), data } : { data } },
  };
}
