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
import { DeprecatedFields } from '../../access/deprecations/fields.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import { varyBy } from '../http/headers.ts';
import { type Page, sendPage } from '../pages/page.ts';
import { EventWriter } from '../subscriptions/event-writer.ts';
import type { GraphQLContext } from './context.ts';
import { CostLimit } from './cost.ts';
import { formatError, formatErrorOfClosedSchema, sendGraphQLError } from './errors.ts';
import { Executor } from './executor.ts';
import { apolloHandler, isNavigation, preventionHeaders, textsForHashes } from './http.ts';
import { lifecycle } from './lifecycle.ts';
import { existingOperationTypes, type OperationLimits, operationLimits, unconditionalSubscriptions } from './limits.ts';
import { readTrustedDocuments } from './trusted-documents.ts';

export interface GraphQLOptions {
  schema: GraphQLSchema;
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
  introspection: boolean;
  /** What browsers get at `/graphql`; nothing of their own when undefined. */
  page: Page | undefined;
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

/** The GraphQL API: `/graphql`, by POST and (queries only) GET. A browser gets a page there. */
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
    validationRules: [operationLimits(limits), existingOperationTypes, unconditionalSubscriptions],
    // Every error about a variable repeats the whole input, so a few are enough.
    executionOptions: { maxCoercionErrors: 5 },
    csrfPrevention: { requestHeaders: preventionHeaders },
    stopOnTerminationSignals: false,
    plugins: [
      ...nothingOfApollos,
      lifecycle({
        schema,
        writer: new EventWriter(schema, options.jit, format),
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
  await app.register(failuresBeside, { prefix: '/graphql' });
  const execute = apolloHandler(apollo, { trusted, stringify });
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    // Root fields are charged one by one, and validated by Apollo Server and their resolvers.
    config: { public: options.page && isNavigation, scope: 'read', isUnmetered: true, checksItself: true },
    async handler(request, reply) {
      // The page or data, and these in two media types.
      if (request.method !== 'POST') varyBy(reply, 'Accept');
      // Without a caller, only a browser's navigation gets here; it never reaches Apollo Server.
      if (!request.caller && options.page) return sendPage(reply, options.page);
      return execute(request, reply);
    },
  });
}

/** What is refused at this address before a route is found (PUT, no key) is a GraphQL response, too. */
async function failuresBeside(app: FastifyInstance): Promise<void> {
  app.setErrorHandler(sendGraphQLError);
  app.setNotFoundHandler(app.answerNotFound);
}
