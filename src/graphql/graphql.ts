import { ApolloServer } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { FastifyInstance } from 'fastify';
import type { KeyActivity } from '../keys/key-activity.ts';
import type { PetService } from '../pets/pet.service.ts';
import { forPages, securityHeaders } from '../rest/security-headers.ts';
import type { GraphQLContext } from './context.ts';
import { CostLimit } from './cost.ts';
import { DeprecatedFields } from './deprecations.ts';
import { formatError, formatErrorOfClosedSchema, sendGraphQLError } from './errors.ts';
import { Executor } from './executor.ts';
import { explorerPage, isNavigation } from './explorer.ts';
import { apolloHandler, isRead, preventionHeaders } from './http.ts';
import { lifecycle } from './lifecycle.ts';
import { type OperationLimits, operationLimits } from './limits.ts';
import { existingOperationTypes } from './operation-types.ts';
import { readingOf } from './request.ts';
import { createSchema, removals } from './schema.ts';
import { readTrustedDocuments } from './trusted-documents.ts';

export interface GraphQLOptions {
  pets: PetService;
  activity: KeyActivity;
  /** Whether callers have quotas. */
  hasQuota: boolean;
  introspection: boolean;
  /** Whether browsers get Apollo Sandbox at `/graphql`. */
  explorer: boolean;
  /** Whether operations are compiled (graphql-jit) or interpreted (graphql-js); the answers are the same. */
  jit: boolean;
  /** Whether clients may register documents by hash as they go (automatic persisted queries). */
  apq: boolean;
  /** The manifest of the only documents that may be run; any may when undefined. */
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

/** The GraphQL face: `/graphql`, by POST and (queries only) GET; a browser gets the explorer there. */
export async function graphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { introspection, limits } = options;
  const schema = await createSchema(options);
  const executor = options.jit ? new Executor(schema) : undefined;
  const format = introspection ? formatError : formatErrorOfClosedSchema;
  const apollo = new ApolloServer<GraphQLContext>({
    schema,
    stringifyResult: (result) => executor?.stringify(result) ?? JSON.stringify(result),
    formatError: format,
    includeStacktraceInErrorResponses: false,
    introspection,
    // With the schema closed, no error message may tell its names.
    hideSchemaDetailsFromClientErrors: !introspection,
    ...(options.apq ? {} : { persistedQueries: false as const }),
    parseOptions: { maxTokens: limits.maxTokens },
    validationRules: [operationLimits(limits), existingOperationTypes],
    // Every fault of the variables is told beside all of the input: a few are enough.
    executionOptions: { maxCoercionErrors: 5 },
    csrfPrevention: { requestHeaders: preventionHeaders },
    stopOnTerminationSignals: false,
    plugins: [
      ...nothingOfApollos,
      lifecycle({
        cost: new CostLimit(schema, limits.maxCost),
        deprecated: new DeprecatedFields(schema, removals),
        activity: options.activity,
        executor,
        formatError: format,
      }),
    ],
  });
  await apollo.start();
  app.addHook('onClose', () => apollo.stop());

  const trusted = options.trustedDocuments ? readTrustedDocuments(options.trustedDocuments) : undefined;
  app.decorateRequest('reading', null);
  app.setErrorHandler(sendGraphQLError);
  const execute = apolloHandler(apollo);
  const page = await explorerPage();
  const pageHeaders = securityHeaders(forPages);
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    config: { public: options.explorer && isNavigation },
    async handler(request, reply) {
      // Without a caller only a navigation comes this far; it never reaches Apollo.
      if (!request.caller)
        return reply
          .headers(pageHeaders)
          .type('text/html; charset=utf-8')
          .send(await page());
      if (trusted || isRead(request.method)) request.reading = readingOf(request, trusted);
      return execute(request, reply);
    },
  });
}
