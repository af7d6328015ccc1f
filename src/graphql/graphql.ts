import { ApolloServer, type ApolloServerOptions } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { FastifyInstance } from 'fastify';
import type { DocumentNode, FormattedExecutionResult, GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import { DeprecatedFields } from '../deprecations/fields.ts';
import type { DeprecationUsage } from '../deprecations/usage.ts';
import { pageHeaders } from '../http/headers.ts';
import type { GraphQLContext } from './context.ts';
import { CostLimit } from './cost.ts';
import { formatError, formatErrorOfClosedSchema, sendGraphQLError } from './errors.ts';
import { Executor } from './executor.ts';
import { explorerPage } from './explorer.ts';
import { apolloHandler, isNavigation, preventionHeaders, textsForHashes } from './http.ts';
import { lifecycle } from './lifecycle.ts';
import { existingOperationTypes, type OperationLimits, operationLimits } from './limits.ts';
import type { OperationObserver } from './observers.ts';
import { readTrustedDocuments } from './trusted-documents.ts';

export interface GraphQLOptions {
  schema: GraphQLSchema;
  /** Operations to try in the explorer. */
  examples: string[];
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
  introspection: boolean;
  /** Whether browsers get Apollo Sandbox at `/graphql`. */
  explorer: boolean;
  /** Whether operations are compiled (graphql-jit) or interpreted (graphql-js); the responses are the same. */
  jit: boolean;
  /** Whether clients may register documents by hash at run time (automatic persisted queries). */
  apq: boolean;
  /** The manifest of the only documents that may run; any may when undefined. */
  trustedDocuments: string | undefined;
  limits: OperationLimits & { maxCost: number };
}

/** Limits of the cache of documents: how many, and their length in characters. */
const cachedDocuments = {
  max: 500,
  maxSize: 1_000_000,
  sizeCalculation: ({ loc }: DocumentNode) => 1 + (loc?.end ?? 0),
};

const nothingOfApollos = [
  ApolloServerPluginCacheControlDisabled(),
  ApolloServerPluginInlineTraceDisabled(),
  ApolloServerPluginLandingPageDisabled(),
  ApolloServerPluginSchemaReportingDisabled(),
  ApolloServerPluginUsageReportingDisabled(),
];

/** The GraphQL API: `/graphql`, by POST and (queries only) GET. A browser gets the explorer there. */
export async function graphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { schema, introspection, limits } = options;
  const executor = options.jit ? new Executor(schema) : undefined;
  const format = introspection ? formatError : formatErrorOfClosedSchema;
  const stringify = (result: FormattedExecutionResult) => executor?.stringify(result) ?? JSON.stringify(result);
  const common: ApolloServerOptions<GraphQLContext> = {
    schema,
    stringifyResult: stringify,
    formatError: format,
    includeStacktraceInErrorResponses: false,
    introspection,
    // When the schema is closed, no error message may reveal its names.
    hideSchemaDetailsFromClientErrors: !introspection,
    // Apollo Server waits for what a cache returns, whether it is a promise or not.
    documentStore: new LRUCache<string, DocumentNode>(cachedDocuments) as never,
    parseOptions: { maxTokens: limits.maxTokens },
    validationRules: [operationLimits(limits), existingOperationTypes],
    // Every error about a variable repeats the whole input, so a few are enough.
    executionOptions: { maxCoercionErrors: 5 },
    csrfPrevention: { requestHeaders: preventionHeaders },
    stopOnTerminationSignals: false,
    plugins: [
      ...nothingOfApollos,
      lifecycle({
        cost: new CostLimit(schema, limits.maxCost),
        deprecated: new DeprecatedFields(schema),
        usage: options.usage,
        observers: options.observers,
        executor,
        formatError: format,
      }),
    ],
  };
  const apollo = {
    any: new ApolloServer(options.apq ? common : { ...common, persistedQueries: false }),
    ordinary: new ApolloServer({ ...common, persistedQueries: { cache: textsForHashes as never } }),
  };
  for (const server of Object.values(apollo)) {
    await server.start();
    app.addHook('onClose', () => server.stop());
  }

  const trusted = options.trustedDocuments ? readTrustedDocuments(options.trustedDocuments) : undefined;
  app.setErrorHandler(sendGraphQLError);
  const execute = apolloHandler(apollo, { trusted, stringify });
  const page = await explorerPage(options.examples.join('\n'));
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    // Root fields are charged one by one, and validated by Apollo Server and their resolvers.
    config: { public: options.explorer && isNavigation, isUnmetered: true, checksItself: true },
    async handler(request, reply) {
      // Without a caller, only a browser's navigation gets here; it never reaches Apollo Server.
      if (!request.caller)
        return reply
          .headers(pageHeaders)
          .type('text/html; charset=utf-8')
          .send(await page());
      return execute(request, reply);
    },
  });
}
