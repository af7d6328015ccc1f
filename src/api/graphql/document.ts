import type { RequestParameters } from '@animal-store/graphql-http/over-http';
import {
  operationLimits,
  unconditionalSubscriptions,
} from '@animal-store/graphql-limits/limits';
import {
  ApolloServer,
  type ApolloServerPlugin,
  type GraphQLRequestContext,
  type GraphQLRequestContextDidResolveOperation,
  HeaderMap,
} from '@apollo/server';
import * as disabledPlugins from '@apollo/server/plugin/disabled';
import {
  type DocumentNode,
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import {
  executionOptions,
  type GraphQLContext,
  type GraphQLOptions,
  type Outcome,
} from './execution.ts';
import { formatError } from './outcome.ts';

/**
 * Caches documents: at most 500, whose texts have at most a million characters.
 */
export const documentCache = () =>
  new LRUCache<string, DocumentNode>({
    max: 500,
    maxSize: 1_000_000,
    sizeCalculation: ({ loc }) => 1 + (loc?.end ?? 0),
  });

/**
 * What `run` hands to the service's plugin, and what the plugin keeps for it.
 */
interface ApolloRun {
  readonly beforeExecution: BeforeExecution | undefined;
  requestContext?: GraphQLRequestContext<ApolloContext>;
  /** The failure of a plugin. */
  failure?: Error;
}
type ApolloContext = GraphQLContext & { readonly run: ApolloRun };

/**
 * Checks a query or mutation that Apollo Server is about to execute. @throws
 * Error that refuses it
 */
export type BeforeExecution = (
  operation: GraphQLRequestContextDidResolveOperation<ApolloContext>,
) => Promise<unknown>;

/**
 * The outcome of a request, and what Apollo Server has found of its operation.
 */
export type ApolloResult = { outcome: Outcome } & Partial<
  Pick<
    GraphQLRequestContext<ApolloContext>,
    'source' | 'document' | 'operation'
  >
>;

/**
 * Apollo Server. It resolves persisted queries, parses and validates; if asked,
 * it also executes.
 */
export class Apollo extends ApolloServer<ApolloContext> {
  constructor({
    schema,
    introspection,
    apq,
    limits,
    plugins,
    apollo,
    logger,
  }: GraphQLOptions) {
    // With its key, Apollo Server reports usage, and the schema if
    // APOLLO_SCHEMA_REPORTING says so.
    const reporters =
      apollo.key === undefined ? [] : ['UsageReporting', 'SchemaReporting'];
    const enabled = new Set([...plugins.map(idOf), ...reporters]);
    const disabled = Object.values(disabledPlugins).map((disable) => disable());
    super({
      schema,
      introspection: true,
      apollo,
      logger,
      // Without plugins, only texts of persisted queries reach this cache
      // again. Apollo Server awaits the result, so it need not be a promise.
      documentStore:
        apq || enabled.size > 0 ? (documentCache() as never) : null,
      parseOptions: { maxTokens: limits.maxTokens },
      executionOptions,
      validationRules: [
        operationLimits({ ...limits, maxFields: limits.maxTokens }),
        unconditionalSubscriptions,
        ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
      ],
      // When the schema is closed, no error message may reveal its names.
      validationOptions: { hideSuggestions: !introspection },
      ...(!apq && { persistedQueries: false as const }),
      formatError: (formatted, error) =>
        error instanceof GraphQLError ? formatError(error) : formatted,
      stopOnTerminationSignals: false,
      plugins: [
        servicePlugin(introspection),
        ...plugins,
        ...disabled.filter((plugin) => !enabled.has(idOf(plugin))),
      ],
    });
  }

  /**
   * Passes a request through Apollo Server. With `beforeExecution` Apollo
   * Server executes queries and mutations, else none. It does not pass Apollo's
   * HTTP layer (`executeHTTPGraphQLRequest`), which loses digits of int64
   * variables by GET.
   *
   * @throws Error of a plugin
   */
  async run(
    parameters: RequestParameters,
    context: GraphQLContext,
    beforeExecution?: BeforeExecution,
  ): Promise<ApolloResult> {
    const run: ApolloRun = { beforeExecution };
    const request = beforeExecution
      ? { ...parameters, http: httpOf(context) }
      : parameters;
    const { body, http } = await this.executeOperation(request, {
      contextValue: { ...context, run },
    }).catch((error: Error) => Promise.reject(run.failure ?? error));
    const {
      source,
      document,
      operation,
      errors: failures,
    } = run.requestContext ?? {};
    const failedAt =
      source === undefined ? 'request' : document ? 'operation' : 'document';
    // It has formatted the errors.
    const result = body.kind === 'single' ? body.singleResult : {};
    return {
      source,
      document,
      operation,
      outcome: { ...result, ...http, failures, failedAt },
    };
  }
}

/**
 * The service's part of Apollo Server's life of a request. It comes before all
 * other plugins.
 */
function servicePlugin(
  introspection: boolean,
): ApolloServerPlugin<ApolloContext> {
  return {
    async requestDidStart(requestContext) {
      const { run } = requestContext.contextValue;
      run.requestContext = requestContext;
      const executes = ({ operation }: GraphQLRequestContext<ApolloContext>) =>
        run.beforeExecution !== undefined &&
        operation?.operation !== 'subscription';
      return {
        async didResolveOperation(resolved) {
          if (executes(resolved)) await run.beforeExecution?.(resolved);
        },
        // A response other than null takes the place of the execution.
        async responseForOperation(resolved) {
          if (executes(resolved)) return null;
          return {
            http: { headers: new HeaderMap() },
            body: { kind: 'single', singleResult: {} },
          };
        },
        async didEncounterErrors({ errors }) {
          // graphql-js can omit names from errors about variables, and Apollo
          // Server does not let it.
          if (!introspection)
            for (const error of errors)
              error.message = error.message.replace(suggestion, '');
        },
      };
    },
    async unexpectedErrorProcessingRequest({ requestContext, error }) {
      requestContext.contextValue.run.failure = error;
    },
  };
}

const suggestion = / ?Did you mean (?:the enum value )?"[^?]*\?$/;

/**
 * The request as Apollo's plugins know it. Its GET is for queries only, and a
 * client of a stream may subscribe by GET.
 */
function httpOf({
  request: { method, url, headers, body },
  accepted,
}: GraphQLContext) {
  const given = Object.entries(headers).map(
    ([name, value]) => [name, `${value}`] as const,
  );
  const at = url.indexOf('?');
  return {
    method: method === 'GET' && accepted.stream ? 'POST' : method,
    headers: new HeaderMap(given),
    search: at < 0 ? '' : url.slice(at),
    body,
  };
}

/**
 * The name of a plugin that Apollo Server installs by itself. It rejects one
 * that is both given and disabled.
 */
const idOf = (plugin: ApolloServerPlugin<never>) =>
  (plugin as { __internal_plugin_id__?: string }).__internal_plugin_id__;
