import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLFormattedError } from 'graphql';
import { idempotencyHeader } from '../../access/idempotency/idempotency-key.ts';
import { StoreError } from '../../errors.ts';
import { toLoggedFailure } from '../http/failures.ts';
import { acceptedTypes, acceptOf } from '../http/negotiation.ts';
import { serverSentEvents, streamHeaders } from '../subscriptions/format.ts';
import { sendStream } from '../subscriptions/subscriptions.ts';
import type { GraphQLContext } from './context.ts';
import { type Outcome, toFormatted } from './outcome.ts';
import { acceptedBy, mediaTypes, RequestError, statusOf } from './request.ts';

/** The media types that a client accepts. */
export function acceptedIn(request: FastifyRequest) {
  return acceptedBy(acceptOf(request), (offered) =>
    acceptedTypes(request, offered),
  );
}

export function sendOutcome(
  outcome: Outcome,
  { request, reply, call, accepted }: GraphQLContext,
): FastifyReply {
  const { data, errors, extensions, stream, headers = [] } = outcome;
  if (stream) return sendStream(request, reply, stream);
  if (errors) call.code ??= `${errors[0]?.extensions?.code}`;
  const { mediaType = mediaTypes.json, prefersEvents } = accepted;
  const { isRetrySafe = true } = outcome;
  const canRetry =
    isRetrySafe || request.headers[idempotencyHeader] !== undefined;
  // A 429 would cause a retry, and may not be the status of a response with
  // data. The field's error contains its waiting time.
  const isPartial = data != null && mediaType === mediaTypes.response;
  const isRefused = canRetry && !isPartial && errors?.some(isTooMany);
  const status = isRefused ? 429 : statusOf(outcome, mediaType);
  const result = { errors, data, extensions };
  if (prefersEvents && status < 400) return sendFramed(reply, result);
  for (const [name, value] of headers) reply.header(name, value);
  if (call.isReplay) reply.header('idempotent-replayed', 'true');
  if (errors && canRetry) {
    const seconds = Math.max(...errors.map(retryAfterOf));
    if (seconds > 0) reply.header('retry-after', `${seconds}`);
  }
  return reply
    .code(status)
    .type(mediaType)
    .serializer(JSON.stringify)
    .send(result);
}

const isTooMany = ({ extensions }: GraphQLFormattedError) =>
  extensions?.code === 'TOO_MANY_REQUESTS';
const retryAfterOf = ({ extensions }: GraphQLFormattedError) =>
  Number(extensions?.retryAfter ?? 0);

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
export function sendGraphQLError(
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
