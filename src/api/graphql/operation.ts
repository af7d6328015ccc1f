import { type ApolloServerPlugin, type GraphQLRequestListener, type GraphQLResponse, HeaderMap } from '@apollo/server';
import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { DeprecatedFields } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import { Subscriber } from '../subscriptions/subscriber.ts';
import type { CostLimit, Estimate } from './cost.ts';
import { formatted, logErrors, retryAfter } from './errors.ts';
import { type Executor, isSingleField } from './executor.ts';
import { assertRepeatable } from './repeatable.ts';
import { type GraphQLContext, mediaTypes } from './request.ts';
import { fragmentsOf, observedOperation, rootFieldsOf } from './selections.ts';

export interface OperationOptions {
  schema: GraphQLSchema;
  cost: CostLimit;
  deprecated: DeprecatedFields;
  usage: DeprecationUsage;
  executor: Executor;
  observers: readonly OperationObserver[];
}

/** Apollo Server waits for every hook; a promise less is measurable. */
const done = Promise.resolve();

/**
 * The life of an operation, in one plugin with one listener because Apollo Server awaits each of them: what it may cost,
 * its execution, and the status of its response.
 */
export function operations(options: OperationOptions): ApolloServerPlugin<GraphQLContext> {
  const { cost, deprecated, usage, executor, observers } = options;
  const subscriber = new Subscriber({ ...options, toResponse });
  const listener: GraphQLRequestListener<GraphQLContext> = {
    didResolveOperation({ schema, document, operation, request, contextValue }) {
      if (!operation) return done;
      const { call, caller, request: incoming } = contextValue;
      const fields = rootFieldsOf(operation, fragmentsOf(document));
      call.operation = { name: operation.name?.value, fields: fields.names };
      call.isWrite = operation.operation === OperationTypeNode.MUTATION;
      for (const one of observers) one.began?.(observedOperation(document, operation, call));
      assertMethod(operation, contextValue);
      if (hasKey(contextValue)) assertRepeatable(schema, document, operation);
      const estimate = cost.check(document, operation, request.variables ?? {});
      const count = () => {
        if (!caller) return;
        for (const [coordinate, removal] of deprecated.in(document)) usage.called(caller, coordinate, removal);
      };
      if (incoming.meter && (estimate.introspection > 0 || estimate.isNested)) {
        return charge(contextValue, estimate, operation).then(count);
      }
      count();
      return done;
    },
    // Apollo Server's own extension point for executors is made for gateways: it creates objects per request that keep
    // the whole request from the scavenger (accessors in a literal, and so a hidden class per request).
    async responseForOperation({ document, operation, request, contextValue }) {
      if (operation?.operation === OperationTypeNode.SUBSCRIPTION && contextValue.events) {
        return subscriber.open({ document, operation, request, contextValue }, contextValue.events);
      }
      const { variables, operationName } = request;
      const result = await executor.execute({ document, operation, operationName, variables, context: contextValue });
      if (result.errors) logErrors(result.errors, contextValue.request);
      return toResponse(result);
    },
    async didEncounterErrors({ errors, request, contextValue }) {
      // Of a document that was refused nothing is known but what the client says.
      contextValue.call.operation ??= { name: request.operationName, fields: undefined };
      logErrors(errors, contextValue.request);
    },
    willSendResponse({ response: { http, body }, source, document, operation, contextValue }) {
      // A stream goes on, and reports its own end.
      if (contextValue.events?.stream) return done;
      const { mediaType, call, request } = contextValue;
      const { errors, data } = body.kind === 'single' ? body.singleResult : {};
      http.headers.set('content-type', mediaType);
      http.status = statusOf({
        // 500 is Apollo Server's for errors that ask for no status.
        asked: http.status === 500 ? (errors?.[0]?.extensions?.status as number) : http.status,
        mayBeForeign: mediaType === mediaTypes.json,
        failedAt: source === undefined ? 'request' : document ? 'operation' : 'document',
        hasData: data !== undefined,
        hasErrors: errors !== undefined,
      });
      if (errors) call.code ??= `${errors[0]?.extensions?.code}`;
      if (call.isReplay) http.headers.set('idempotent-replayed', 'true');
      if (document && operation) {
        for (const one of observers) one.ended(observedOperation(document, operation, call), errors);
      }
      const mayRepeat = !errors || hasKey(contextValue) || isRepeatable(operation, errors);
      // The quota's 429 must not cause a retry either; the field's own error says how long to wait with that field.
      // Nor may it be the status of data, where the media type says that there are some.
      const isPartial = data != null && mediaType === mediaTypes.response;
      if ((!mayRepeat || isPartial) && request.meter) request.meter.refusal = undefined;
      const seconds = errors && mayRepeat ? retryAfter(errors) : 0;
      if (seconds > 0) http.headers.set('retry-after', `${seconds}`);
      return contextValue.settle?.() ?? done;
    },
  };
  return { requestDidStart: async () => listener };
}

/** Only queries come by GET: a link must change nothing. A subscription does, if its client accepts events. */
function assertMethod({ operation }: OperationDefinitionNode, { request, events }: GraphQLContext): void {
  const isSubscription = operation === OperationTypeNode.SUBSCRIPTION;
  if (operation === OperationTypeNode.QUERY || (isSubscription && events)) return;
  if (request.method !== 'POST') {
    const message =
      'By GET only queries are answered: send a mutation by POST, and a subscription with `Accept: text/event-stream`.';
    throw refused(new StoreError('METHOD_NOT_ALLOWED', message), { allow: 'GET, HEAD, OPTIONS, POST' });
  }
  if (!isSubscription) return;
  const message = 'A subscription is answered with events: send `Accept: text/event-stream`.';
  throw refused(new StoreError('NOT_ACCEPTABLE', message));
}

/** @param headers of the response */
function refused(originalError: StoreError, headers: Record<string, string> = {}): GraphQLError {
  const { message, status } = originalError;
  const http = { status, headers: new HeaderMap(Object.entries(headers)) };
  return new GraphQLError(message, { originalError, extensions: { http } });
}

/**
 * Charges what no root field charges itself: introspection; and the whole of an operation whose nested fields cost
 * something, because they are read after their root field has returned. What is not read is given back at the end. A
 * subscription is charged event by event.
 *
 * @throws StoreError TOO_MANY_REQUESTS
 */
async function charge(
  context: GraphQLContext,
  { cost, introspection, rootFields, isNested }: Estimate,
  { operation }: OperationDefinitionNode,
): Promise<void> {
  const { meter } = context.request;
  if (introspection > 0) await meter?.take(introspection);
  if (!isNested || operation === OperationTypeNode.SUBSCRIPTION) return;
  // Each root field costs one, and the last of them all that is read.
  if (rootFields > 1) await meter?.take(rootFields - 1);
  context.settle = await meter?.begin(cost - introspection - (rootFields - 1));
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

function toResponse({ data, errors }: ExecutionResult): GraphQLResponse {
  const singleResult = errors ? { errors: errors.map(formatted), data } : { data };
  return { http: unchanged, body: { kind: 'single', singleResult } };
}

interface Outcome {
  /** The status that an error asks for; undefined for none. */
  asked: number | undefined;
  /** True when the media type does not say that the body is GraphQL's. */
  mayBeForeign: boolean;
  /** How far the request came. */
  failedAt: 'request' | 'document' | 'operation';
  hasData: boolean;
  hasErrors: boolean;
}

/**
 * The HTTP status of a response (GraphQL over HTTP, edition of September 2026, "Status Codes"): 400 for what cannot be
 * parsed, 422 for what was parsed and refused, 294 for data with errors. A client that accepts only `application/json`
 * gets 200 for every well-formed request and 400 otherwise, as earlier drafts had it: by the status it could not tell
 * our response from an intermediary's, and existing clients rely on it.
 */
function statusOf({ asked = 200, mayBeForeign, failedAt, hasData, hasErrors }: Outcome): number {
  if (asked !== 200 && asked !== 400) return asked;
  if (mayBeForeign) return failedAt === 'request' ? asked : 200;
  if (hasData) return hasErrors ? 294 : 200;
  return failedAt === 'document' ? 400 : 422;
}
