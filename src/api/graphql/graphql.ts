import { STATUS_CODES } from 'node:http';
import { ApolloServer } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type DocumentNode, type GraphQLSchema, NoSchemaIntrospectionCustomRule } from 'graphql';
import { LRUCache } from 'lru-cache';
import { DeprecatedFields } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import { varyBy } from '../http/headers.ts';
import { type Page, sendPage } from '../pages/page.ts';
import { sendFramed } from '../subscriptions/event-stream.ts';
import { CostLimit } from './cost.ts';
import { formatError, sendGraphQLError } from './errors.ts';
import { Executor } from './executor.ts';
import { existingOperationTypes, type OperationLimits, operationLimits, unconditionalSubscriptions } from './limits.ts';
import { operations } from './operation.ts';
import {
  acceptedBy,
  assertDocument,
  eventsOf,
  type GraphQLContext,
  isNavigation,
  isWebSocket,
  mediaTypes,
  parametersOf,
} from './request.ts';
import { readTrustedDocuments, trustedDocumentOf } from './trusted-documents.ts';

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

/**
 * The GraphQL API: `/graphql`, by POST and (queries only) GET. A browser gets a page there.
 *
 * The way of a request: what its client accepts and its parameters (request.ts); Apollo Server parses and validates each
 * document once, within the limits (limits.ts); its cost (cost.ts), execution and status (operation.ts, executor.ts).
 */
export async function graphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { page } = options;
  const executor = new Executor(options.schema, { jit: options.jit, suggestions: options.introspection });
  const server = apolloServer(options, executor);
  await server.start();
  // Node.js has no reason phrase for it yet.
  STATUS_CODES[294] ??= 'Partial Success';
  app.addHook('onClose', () => server.stop());
  const trusted = options.trustedDocuments ? readTrustedDocuments(options.trustedDocuments) : undefined;

  async function execute(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const accepted = acceptedBy(request);
    const mediaType = accepted.prefersEvents ? mediaTypes.json : accepted.mediaType;
    if (!mediaType) throw notAcceptable();
    const parameters = parametersOf(request);
    if (trusted) Object.assign(parameters, { query: trustedDocumentOf(trusted, parameters), extensions: undefined });
    else assertDocument(parameters);
    const events = accepted.events ? eventsOf(request) : undefined;
    const { caller, call } = request;
    const contextValue = { caller, call, request, reply, events, mediaType };
    const { http, body } = await server.executeOperation(parameters, { contextValue });
    if (body.kind === 'incremental') throw new Error('Nothing in the schema can be deferred.');
    if (events?.refusal) throw events.refusal;
    if (events?.stream) return events.stream.sendTo(reply);
    const { status = 200, headers } = http;
    const text = JSON.stringify(body.singleResult);
    const isEvent = events && accepted.prefersEvents && status < 400 && !request.meter?.refusal;
    if (isEvent) return sendFramed(reply, events.framing, text);
    for (const [name, value] of headers) reply.header(name, value);
    return reply.code(status).send(text);
  }

  const isPublic = (request: FastifyRequest) => isWebSocket(request) || (page !== undefined && isNavigation(request));
  app.setErrorHandler(sendGraphQLError);
  await app.register(failuresBeside, { prefix: '/graphql' });
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    // Root fields are charged one by one, and validated by Apollo Server and their resolvers.
    config: { public: isPublic, scope: 'read', isUnmetered: true, checksItself: true },
    async handler(request, reply) {
      if (isWebSocket(request)) throw noWebSocket();
      // The page or data, and these in two media types.
      if (request.method !== 'POST') varyBy(reply, 'Accept');
      // Without a caller, only a browser's navigation gets here; it never reaches Apollo Server.
      if (!request.caller && page) return sendPage(reply, page);
      return execute(request, reply);
    },
  });
}

/** Limits of the cache of documents: how many, and their length in characters. */
const cachedDocuments = {
  max: 500,
  maxSize: 1_000_000,
  sizeCalculation: ({ loc }: DocumentNode) => 1 + (loc?.end ?? 0),
};

function apolloServer(
  { schema, limits, ...options }: GraphQLOptions,
  executor: Executor,
): ApolloServer<GraphQLContext> {
  const { introspection, observers, usage, apq } = options;
  const cost = new CostLimit(schema, limits.maxCost);
  const deprecated = new DeprecatedFields(schema);
  return new ApolloServer<GraphQLContext>({
    schema,
    formatError,
    includeStacktraceInErrorResponses: false,
    introspection: true,
    // Apollo Server waits for what a cache returns, whether it is a promise or not.
    documentStore: new LRUCache<string, DocumentNode>(cachedDocuments) as never,
    parseOptions: { maxTokens: limits.maxTokens },
    validationRules: [
      operationLimits(limits),
      existingOperationTypes,
      unconditionalSubscriptions,
      ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
    ],
    // When the schema is closed, no error message may reveal its names.
    validationOptions: { hideSuggestions: !introspection },
    ...(!apq && { persistedQueries: false as const }),
    stopOnTerminationSignals: false,
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      operations({ schema, cost, deprecated, usage, executor, observers }),
    ],
  });
}

/** Without a key, which such clients send in a message of their own: 401 would look as if theirs were wrong. */
function noWebSocket(): StoreError {
  const message =
    'WebSocket is not supported: a subscription is answered with server-sent events. Send it by POST with `Accept: text/event-stream`.';
  return new StoreError('NOT_ACCEPTABLE', message);
}

/** Apollo Server would notice too, but only after a mutation has run. */
function notAcceptable(): StoreError {
  const message = '`Accept` must name application/graphql-response+json or application/json, or text/event-stream.';
  return new StoreError('NOT_ACCEPTABLE', message);
}

/** What is refused at this address before a route is found (PUT, no key) is a GraphQL response, too. */
async function failuresBeside(app: FastifyInstance): Promise<void> {
  app.setErrorHandler(sendGraphQLError);
  app.setNotFoundHandler(app.answerNotFound);
}
