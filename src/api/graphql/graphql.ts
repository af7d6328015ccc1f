import type { ApolloServerPlugin } from '@apollo/server';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { OperationLimits } from '../../../packages/graphql-limits/src/limits.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import { varyBy } from '../http/headers.ts';
import { type Page, sendPage } from '../pages/html.ts';
import { Documents } from './documents.ts';
import { Operations } from './operations.ts';
import {
  acceptedBy,
  type GraphQLContext,
  isNavigation,
  isWebSocket,
  parametersOf,
  sendGraphQLError,
  sendOutcome,
} from './over-http.ts';
import { readTrustedDocuments } from './trusted-documents.ts';

export interface GraphQLOptions {
  schema: GraphQLSchema;
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
  /** Whether clients may read the schema, and errors suggest its names. */
  introspection: boolean;
  /** The page for browsers at `/graphql`, if any. */
  page: Page | undefined;
  /** Whether operations are compiled (graphql-jit) or interpreted (graphql-js); the responses are the same. */
  jit: boolean;
  /** Whether clients may register documents by hash at run time (automatic persisted queries). */
  apq: boolean;
  /** The manifest of the only documents that may run; any may when undefined. */
  trustedDocuments: string | undefined;
  limits: OperationLimits & { maxCost: number };
  /** Plugins of Apollo Server. With any, or Apollo's key, Apollo Server executes. */
  plugins: readonly ApolloServerPlugin<GraphQLContext>[];
  /** The key of GraphOS and the graph to which usage is reported. */
  apollo: { key: string | undefined; graphRef: string | undefined };
  logger: Pick<FastifyBaseLogger, 'debug' | 'info' | 'warn' | 'error'>;
}

/**
 * Serves the GraphQL API at `/graphql`, by POST and (queries only) GET. Browsers get a page.
 *
 * The steps of a request: negotiation and parameters (over-http.ts); the document, which Apollo Server parses and validates
 * once (documents.ts) within the limits; its execution (operations.ts), if its cost allows it; status,
 * headers and errors (over-http.ts).
 */
export async function graphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { page, trustedDocuments } = options;
  const documents = await Documents.open(options);
  app.addHook('onClose', () => documents.close());
  const operations = new Operations(documents, options);
  const trusted = trustedDocuments ? readTrustedDocuments(trustedDocuments) : undefined;

  const isPublic = (request: FastifyRequest) => isWebSocket(request) || (page !== undefined && isNavigation(request));
  app.setErrorHandler(sendGraphQLError);
  await app.register(failuresBeside, { prefix: '/graphql' });
  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    schema: { hide: true },
    // Root fields charge themselves. Apollo Server and the resolvers validate the input.
    config: { public: isPublic, scope: 'read', isUnmetered: true, checksItself: true },
    async handler(request, reply) {
      if (isWebSocket(request)) throw noWebSocket();
      // The response is the page or data, in one of two media types.
      if (request.method !== 'POST') varyBy(reply, 'Accept');
      // Without a caller, only a browser's navigation gets here; it never reaches Apollo Server.
      if (!request.caller && page) return sendPage(reply, page);
      return answer(request, reply);
    },
  });

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const accepted = acceptedBy(request);
    if (!accepted.mediaType) throw notAcceptable();
    const context = { call: request.call, request, reply, accepted };
    return sendOutcome(await operations.answer(parametersOf(request, trusted), context), context);
  }
}

/** Answers without authentication, because these clients send their key in a message, and a 401 would mislead them. */
function noWebSocket(): StoreError {
  const message =
    'WebSocket is not supported: send a subscription by POST with `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';
  return new StoreError('NOT_ACCEPTABLE', message);
}

/** Rejects early, because a mutation must not run when its result cannot be sent. */
function notAcceptable(): StoreError {
  const message =
    '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';
  return new StoreError('NOT_ACCEPTABLE', message);
}

/** Also formats rejections before routing (PUT, no key) as GraphQL responses. */
async function failuresBeside(app: FastifyInstance): Promise<void> {
  app.setErrorHandler(sendGraphQLError);
  app.setNotFoundHandler(app.answerNotFound);
}
