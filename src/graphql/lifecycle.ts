import { type ApolloServerPlugin, type GraphQLRequestListener, type GraphQLResponse, HeaderMap } from '@apollo/server';
import {
  type ExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { DeprecatedFields } from '../deprecations/fields.ts';
import type { DeprecationUsage } from '../deprecations/usage.ts';
import { assertRepeatable } from '../idempotency/mutations.ts';
import { idempotencyKey } from '../idempotency/once.ts';
import type { GraphQLContext } from './context.ts';
import type { CostLimit } from './cost.ts';
import { logErrors, retryAfter } from './errors.ts';
import { type Executor, isSingleField } from './executor.ts';
import { fragmentIn } from './fragments.ts';
import { plainJson, useReading } from './http.ts';
import type { OperationObserver } from './observers.ts';
import { rootFieldsOf } from './root-fields.ts';

export interface LifecycleOptions {
  cost: CostLimit;
  deprecated: DeprecatedFields;
  usage: DeprecationUsage;
  /** Executes what it can instead of graphql-js; undefined for none. */
  executor: Executor | undefined;
  observers: readonly OperationObserver[];
  formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError;
}

const json = 'application/json; charset=utf-8';

/** Apollo Server waits for every hook; a promise less is measurable. */
const done = Promise.resolve();

/** All our hooks into the life of an operation, in one plugin with one listener: Apollo Server awaits each of them. */
export function lifecycle(options: LifecycleOptions): ApolloServerPlugin<GraphQLContext> {
  const { cost, deprecated, usage, executor, observers } = options;
  const listener: GraphQLRequestListener<GraphQLContext> = {
    didResolveOperation({ schema, document, operation, request, contextValue }) {
      if (!operation) return done;
      const fields = rootFieldsOf(operation, (name) => fragmentIn(document, name));
      contextValue.call.operation = { name: operation.name?.value, fields: fields.names };
      for (const one of observers) one.began({ document, operation, context: contextValue });
      if (hasKey(contextValue)) assertRepeatable(schema, document, operation);
      const { introspection, copies } = cost.check(document, operation, request.variables ?? {});
      contextValue.call.copies = copies;
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
    // A client that accepts only `application/json` gets 200 for every well-formed request, as GraphQL over HTTP
    // (section 6.4.1) recommends, even when its document or variables are rejected: by the status it could not tell a
    // GraphQL response from an intermediary's. A client that accepts `application/graphql-response+json` gets 400.
    willSendResponse({ request, response: { http, body }, source, document, operation, contextValue }) {
      const accept = request.http?.headers.get('accept') ?? '*/*';
      // Apollo Server would choose the same, but it negotiates media types for every request.
      if (plainJson.includes(accept)) http.headers.set('content-type', json);
      if (http.status === 400 && source !== undefined && !accept.includes('application/graphql-response+json')) {
        http.status = 200;
      }
      const { errors } = body.kind === 'single' ? body.singleResult : {};
      if (errors) contextValue.call.code ??= `${errors[0]?.extensions?.code}`;
      if (contextValue.call.isReplay) http.headers.set('idempotent-replayed', 'true');
      if (document && operation) {
        for (const one of observers) one.ended({ document, operation, context: contextValue }, errors);
      }
      const mayRepeat = !errors || hasKey(contextValue) || isRepeatable(operation, errors);
      // The quota's 429 must not cause a retry either; the field's own error says how long to wait with that field.
      if (!mayRepeat && contextValue.request.meter) contextValue.request.meter.refusal = undefined;
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
  const format = (error: GraphQLError) => {
    const extensions = { code: 'INTERNAL_SERVER_ERROR', ...error.extensions };
    return formatError({ ...error.toJSON(), extensions }, error);
  };
  return {
    http: unchanged,
    body: { kind: 'single', singleResult: errors ? { errors: errors.map(format), data } : { data } },
  };
}
