import {
  serverSentEvents,
  streamHeaders,
} from '@animal-store/graphql-http/format';
import {
  acceptedBy,
  mediaTypes,
  parametersOf,
  RequestError,
  statusOf,
} from '@animal-store/graphql-http/over-http';
import { trustedDocumentsIn } from '@animal-store/graphql-http/trusted-documents';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { readText } from '../../config/text-file.ts';
import { StoreError } from '../../errors.ts';
import { toLoggedFailure } from '../http/failures.ts';
import { listOf } from '../http/fields.ts';
import { STATUS_CODES } from '../http/malformed.ts';
import { acceptedTypes, acceptOf, varyBy } from '../http/negotiation.ts';
import { parseJson } from '../http/routes.ts';
import { sendStream } from '../subscriptions/subscriptions.ts';
import { Apollo } from './document.ts';
import {
  type GraphQLContext,
  type GraphQLOptions,
  isSingleField,
  type Outcome,
} from './execution.ts';
import { toFormatted } from './outcome.ts';
import { Operations } from './pipeline.ts';

/**
 * Serves the GraphQL API at the plugin's prefix, by POST and (queries only)
 * GET.
 *
 * The steps of a request: media types and parameters
 * (@animal-store/graphql-http); the document, which Apollo Server parses and
 * validates once (apollo.ts) within the limits; its cost (operations.ts) and
 * execution (operation.ts); the errors (format-error.ts), status and headers.
 * Apollo Server's CSRF prevention is not needed: every request has
 * `Authorization`, which foreign pages cannot send without a preflight.
 */
export async function graphQL(
  app: FastifyInstance,
  options: GraphQLOptions,
): Promise<void> {
  // Node.js has no reason phrase for it yet.
  STATUS_CODES[294] ??= 'Partial Success';
  const { trustedDocuments } = options;
  const apollo = new Apollo(options);
  await apollo.start();
  app.addHook('onClose', () => apollo.stop());
  const operations = new Operations(apollo, options);
  const setting = 'TRUSTED_DOCUMENTS';
  const file = `${trustedDocuments} (${setting})`;
  const trusted = trustedDocuments
    ? trustedDocumentsIn(readText(trustedDocuments, file), file)
    : undefined;
  const parse = (text: string, name: string) =>
    parseJson(Buffer.from(text), `The ${name} are`);
  const reading = { parseJson: parse, trusted, setting };

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
      return sendOutcome(
        await operations.answer(parametersOf(request, reading), context),
        context,
      );
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

function acceptedIn(request: FastifyRequest) {
  return acceptedBy(acceptOf(request), (offered) =>
    acceptedTypes(request, offered),
  );
}

/** True for a WebSocket upgrade, for example graphql-ws. */
function isWebSocket({ headers }: FastifyRequest): boolean {
  return listOf(headers.upgrade?.toLowerCase()).includes('websocket');
}

function sendOutcome(
  outcome: Outcome,
  { request, reply, call, accepted }: GraphQLContext,
): FastifyReply {
  const { data, errors = [], extensions, stream, headers = [] } = outcome;
  if (stream) return sendStream(request, reply, stream);
  if (outcome.errors) call.code ??= `${errors[0]?.extensions?.code}`;
  const mediaType = accepted.mediaType ?? mediaTypes.json;
  const canRetry =
    isRetrySafe(outcome) || request.headers[idempotencyKey] !== undefined;
  // A 429 would cause a retry, and may not be the status of a response with
  // data. The field's error contains its waiting time.
  const isPartial = data != null && mediaType === mediaTypes.response;
  const isRefused = errors.some(
    ({ extensions }) => extensions?.code === 'TOO_MANY_REQUESTS',
  );
  const status =
    isRefused && canRetry && !isPartial ? 429 : statusOf(outcome, mediaType);
  const result = { errors: outcome.errors, data, extensions };
  if (accepted.prefersEvents && status < 400) return sendFramed(reply, result);
  for (const [name, value] of headers) reply.header(name, value);
  if (call.isReplay) reply.header('idempotent-replayed', 'true');
  const seconds = Math.max(
    0,
    ...errors.map(({ extensions }) => Number(extensions?.retryAfter ?? 0)),
  );
  if (seconds > 0 && canRetry) reply.header('retry-after', `${seconds}`);
  return reply
    .code(status)
    .type(mediaType)
    .serializer(JSON.stringify)
    .send(result);
}

/**
 * False after the failure of one of several mutations, because another may have
 * run. An error without a path means that none has run.
 */
function isRetrySafe({ operation, errors }: Outcome): boolean {
  if (operation?.type !== 'mutation' || isSingleField(operation.node))
    return true;
  return !errors?.some(({ path }) => path);
}

/** Sends a single result as a stream, which no cache may keep. */
function sendFramed(reply: FastifyReply, result: object): FastifyReply {
  reply.contentTag = null;
  const { mediaType, next, complete } = serverSentEvents;
  reply.headers(streamHeaders).type(mediaType);
  return reply
    .serializer((one: object) => next(JSON.stringify(one)) + complete)
    .send(result);
}

/**
 * Sends a failure outside an operation (no key, no JSON) as a GraphQL response,
 * with the media type that the client prefers: with `application/json` it
 * cannot know that the body of a 4xx is GraphQL's (GraphQL over HTTP, "Body").
 *
 * A client of events gets a rejected key as an event, because graphql-sse's
 * client treats every status except 200 as a lost connection, and retries
 * silently.
 */
function sendGraphQLError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const isOfRequest = error instanceof RequestError;
  const failure = toLoggedFailure(
    isOfRequest ? new StoreError(error.code, error.message) : error,
    request,
  );
  reply.headers(failure.headers);
  const { prefersEvents, mediaType = mediaTypes.json } = acceptedIn(request);
  if (prefersEvents && (failure.status === 401 || failure.status === 403)) {
    sendFramed(reply, { errors: [toFormatted(failure)] });
    return;
  }
  const isUnprocessable =
    isOfRequest && error.isUnprocessable && mediaType === mediaTypes.response;
  reply.code(isUnprocessable ? 422 : failure.status).type(mediaType);
  reply.serializer(JSON.stringify).send({ errors: [toFormatted(failure)] });
}
