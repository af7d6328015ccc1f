import { ApolloServer } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { fastifyApolloHandler } from '@as-integrations/fastify';
import type { FastifyInstance } from 'fastify';
import type { PetService } from '../pets/pet.service.ts';
import { createContext, type GraphQLContext } from './context.ts';
import { formatError, logErrors, sendGraphQLError } from './errors.ts';
import { asGateway, Executor } from './executor.ts';
import { explorerPage, isNavigation } from './explorer.ts';
import { createSchema } from './schema.ts';

export interface GraphQLOptions {
  pets: PetService;
  /** Whether operations are compiled (graphql-jit) or interpreted (graphql-js); the answers are the same. */
  jit: boolean;
}

const nothingOfApollos = [
  ApolloServerPluginCacheControlDisabled(),
  ApolloServerPluginInlineTraceDisabled(),
  ApolloServerPluginLandingPageDisabled(),
  ApolloServerPluginSchemaReportingDisabled(),
  ApolloServerPluginUsageReportingDisabled(),
];

/** The GraphQL face: `/graphql`, by POST and (queries only) GET; a browser gets the explorer there. */
export async function graphQL(app: FastifyInstance, { pets, jit }: GraphQLOptions): Promise<void> {
  const schema = await createSchema({ pets });
  const executor = new Executor(schema);
  const apollo = new ApolloServer<GraphQLContext>({
    ...(jit ? { gateway: asGateway(schema, executor) } : { schema }),
    stringifyResult: (result) => executor.stringify(result),
    formatError,
    includeStacktraceInErrorResponses: false,
    introspection: true,
    persistedQueries: false,
    stopOnTerminationSignals: false,
    plugins: [...nothingOfApollos, logErrors],
  });
  await apollo.start();
  app.addHook('onClose', () => apollo.stop());

  app.setErrorHandler(sendGraphQLError);
  const execute = fastifyApolloHandler(apollo, { context: createContext });
  const page = await explorerPage();
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    config: { public: isNavigation },
    handler(request, reply) {
      // Without a caller only a navigation comes this far; it never reaches Apollo.
      if (!request.caller) return reply.type('text/html; charset=utf-8').send(page);
      return execute.call(app, request, reply);
    },
  });
}
