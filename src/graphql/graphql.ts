import { ApolloServer } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { FastifyInstance } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { DeprecatedFields } from '../deprecations/fields.ts';
import type { DeprecationUsage } from '../deprecations/usage.ts';
import { pageHeaders } from '../http/headers.ts';
import type { GraphQLContext } from './context.ts';
import { CostLimit } from './cost.ts';
import { formatError, formatErrorOfClosedSchema, sendGraphQLError } from './errors.ts';
import { Executor } from './executor.ts';
import { explorerPage } from './explorer.ts';
import { apolloHandler, isNavigation, preventionHeaders } from './http.ts';
import { lifecycle } from './lifecycle.ts';
import { existingOperationTypes, type OperationLimits, operationLimits } from './limits.ts';
import { readTrustedDocuments } from './trusted-documents.ts';

export interface GraphQLOptions {
  schema: GraphQLSchema;
  /** Operations to try in the explorer. */
  examples: string[];
  usage: DeprecationUsage;
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
  const apollo = new ApolloServer<GraphQLContext>({
    schema,
    stringifyResult: (result) => executor?.stringify(result) ?? JSON.stringify(result),
    formatError: format,
    includeStacktraceInErrorResponses: false,
    introspection,
    // When the schema is closed, no error message may reveal its names.
    hideSchemaDetailsFromClientErrors: !introspection,
    ...(options.apq ? {} : { persistedQueries: false as const }),
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
        executor,
        formatError: format,
      }),
    ],
  });
  await apollo.start();
  app.addHook('onClose', () => apollo.stop());

  const trusted = options.trustedDocuments ? readTrustedDocuments(options.trustedDocuments) : undefined;
  app.setErrorHandler(sendGraphQLError);
  const execute = apolloHandler(apollo, trusted);
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
