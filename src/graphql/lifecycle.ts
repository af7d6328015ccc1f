import { type ApolloServerPlugin, type GraphQLRequestListener, type GraphQLResponse, HeaderMap } from '@apollo/server';
import {
  type ExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { KeyActivity } from '../keys/key-activity.ts';
import type { GraphQLContext } from './context.ts';
import type { CostLimit } from './cost.ts';
import type { DeprecatedFields } from './deprecations.ts';
import { logErrors, retryAfter } from './errors.ts';
import { type Executor, isSingleField } from './executor.ts';
import { useReading } from './request.ts';

export interface LifecycleOptions {
  cost: CostLimit;
  deprecated: DeprecatedFields;
  activity: KeyActivity;
  /** Executes in graphql-js's place what it can; nothing when undefined. */
  executor: Executor | undefined;
  formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError;
}

const json = 'application/json; charset=utf-8';

/** All that we do in the life of an operation, in one plugin with one listener: Apollo Server awaits every one of them. */
export function lifecycle(options: LifecycleOptions): ApolloServerPlugin<GraphQLContext> {
  const { cost, deprecated, activity, executor } = options;
  const listener: GraphQLRequestListener<GraphQLContext> = {
    async didResolveOperation({ document, operation, request, contextValue }) {
      if (!operation) return;
      const { introspection, copies } = cost.check(document, operation, request.variables ?? {});
      contextValue.call.copies = copies;
      if (introspection > 0) await contextValue.request.meter?.take(introspection);
      for (const [coordinate, removal] of deprecated.in(document)) {
        activity.calledDeprecated(contextValue.caller?.id ?? 0, coordinate, removal);
      }
    },
    // Apollo Server's seam for executors is made for gateways: it makes objects for each of them that keep the whole
    // request from the scavenger (accessors in a literal, hence a hidden class for every request).
    async responseForOperation({ source, queryHash = source, document, operation, request, contextValue }) {
      const { variables } = request;
      const result = await executor?.execute(queryHash, { document, operation, variables, context: contextValue });
      if (!result) return null;
      if (result.errors) logErrors(result.errors, contextValue.request);
      return toResponse(result, options);
    },
    async didEncounterErrors({ errors, contextValue }) {
      logErrors(errors, contextValue.request);
    },
    // A client that asks for `application/json` alone gets 200 for every well-formed request, as GraphQL over HTTP
    // (section 6.4.1) wishes, even when its document or variables are refused: it could not tell a GraphQL response from
    // an intermediary's by its status. Whoever accepts `application/graphql-response+json` gets 400.
    async willSendResponse({ request, response: { http, body }, source, operation, contextValue }) {
      const accept = request.http?.headers.get('accept') ?? '*/*';
      // What Apollo Server would find, too, weighing media types for every request.
      if (accept === '*/*' || accept === 'application/json') http.headers.set('content-type', json);
      if (http.status === 400 && source !== undefined && !accept.includes('application/graphql-response+json')) {
        http.status = 200;
      }
      const { errors } = body.kind === 'single' ? body.singleResult : {};
      const mayRepeat = !errors || isRepeatable(operation, errors);
      // Nor must the quota's 429 make anybody repeat it; the field's own error says how long to wait with that field.
      if (!mayRepeat && contextValue.request.meter) contextValue.request.meter.refusal = undefined;
      const seconds = errors && mayRepeat ? retryAfter(errors) : 0;
      if (seconds > 0) http.headers.set('retry-after', `${seconds}`);
    },
  };
  return {
    async requestDidStart({ request, contextValue }) {
      useReading(request, contextValue.request);
      return listener;
    },
  };
}

/** Of several mutations the first may have been carried out: whoever sent the request again would do them twice. */
function isRepeatable(operation: OperationDefinitionNode | undefined, errors: readonly GraphQLFormattedError[]) {
  if (operation?.operation !== OperationTypeNode.MUTATION) return true;
  // An error without a path is about the operation: nothing of it has run.
  return isSingleField(operation) || errors.every(({ path }) => path === undefined);
}

const unchanged = { status: undefined, headers: new HeaderMap() };

/** As Apollo Server makes one of what graphql-js answers. */
function toResponse({ data, errors }: ExecutionResult, { formatError }: LifecycleOptions): GraphQLResponse {
  const format = (error: GraphQLError) => {
    const extensions = { code: 'INTERNAL_SERVER_ERROR', ...error.extensions };
    return formatError({ ...error.toJSON(), extensions }, error);
  };
  return {
    http: unchanged,
    body: { kind: 'single', singleResult: { data, ...(errors && { errors: errors.map(format) }) } },
  };
}
