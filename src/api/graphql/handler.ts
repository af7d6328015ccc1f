import type { FastifyInstance, FastifyRequest } from 'fastify';
import { StoreError } from '../../errors.ts';
import { STATUS_CODES } from '../http/malformed.ts';
import { listOf, varyBy } from '../http/negotiation.ts';
import { parseJson } from '../http/routes.ts';
import { acceptedIn, sendGraphQLError, sendOutcome } from './answer.ts';
import { interpreter } from './execution.ts';
import type { GraphQLParts } from './parts.ts';
import { Pipeline, type PipelineOptions } from './pipeline.ts';
import { parametersOf } from './request.ts';

export interface GraphQLOptions
  extends Omit<PipelineOptions, 'executor' | 'isTrusted'> {
  parts: GraphQLParts;
}

/**
 * Serves the GraphQL API at the plugin's prefix, by POST and (queries only)
 * GET.
 *
 * The steps of a request: media types and parameters
 * (request.ts); then those of the pipeline; the answer. Apollo
 * Server's CSRF prevention is not needed: every request has `Authorization`,
 * which foreign pages cannot send without a preflight.
 */
export async function graphQL(
  app: FastifyInstance,
  { parts, ...options }: GraphQLOptions,
): Promise<void> {
  // Node.js has no reason phrase for it yet.
  STATUS_CODES[294] ??= 'Partial Success';
  const { schema, introspection } = options;
  const { isTrusted } = parts;
  const interpret = interpreter(schema, !introspection);
  const executor = parts.executor?.(schema, interpret) ?? interpret;
  const pipeline = await Pipeline.open({ ...options, isTrusted, executor });
  const answer =
    (await parts.answer?.(pipeline, app)) ?? pipeline.answer.bind(pipeline);
  const reading = {
    parseJson: (text: string, name: string) =>
      parseJson(Buffer.from(text), `The ${name} are`),
    findDocument: parts.findDocument,
  };

  app.setErrorHandler(sendGraphQLError);
  // Also formats rejections before routing (PUT, no key) as GraphQL responses.
  app.setNotFoundHandler(app.answerNotFound);
  app.route({
    method: ['GET', 'POST'],
    url: '',
    schema: { hide: true },
    // Root fields charge themselves. Apollo Server and the resolvers validate
    // the input.
    config: {
      public: isWebSocket,
      scope: 'read',
      isUnmetered: true,
      validatesItself: true,
    },
    async handler(request, reply) {
      if (isWebSocket(request))
        throw new StoreError('NOT_ACCEPTABLE', noWebSocket);
      if (request.method !== 'POST') varyBy(reply, 'Accept');
      const accepted = acceptedIn(request);
      if (!accepted.mediaType)
        throw new StoreError('NOT_ACCEPTABLE', notAcceptable);
      const context = { call: request.call, request, reply, accepted };
      const parameters = parametersOf(request, reading);
      return sendOutcome(await answer(parameters, context), context);
    },
  });
}

/**
 * Is answered without authentication, because these clients send their key in a
 * message, and a 401 would mislead them.
 */
const noWebSocket =
  'WebSocket is not supported: send a subscription by POST with `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';

/**
 * Comes before execution, because a mutation must not run when its result
 * cannot be sent.
 */
const notAcceptable =
  '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';

/** True for a WebSocket upgrade, for example graphql-ws. */
function isWebSocket({ headers }: FastifyRequest): boolean {
  return listOf(headers.upgrade?.toLowerCase()).includes('websocket');
}
