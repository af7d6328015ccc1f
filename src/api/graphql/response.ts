import { STATUS_CODES } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { asOnlyEvent, serverSentEvents, streamHeaders } from '../../../packages/graphql-streams/src/format.ts';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { type ErrorCode, httpStatusOf, internalError, type StoreError, storeErrorOf } from '../../errors.ts';
import { fail, logFailure } from '../http/failures.ts';
import { isSingleField } from './documents.ts';
import type { Outcome } from './operations.ts';
import { acceptedBy, type GraphQLContext, MalformedRequest, mediaTypes } from './request.ts';

// Node.js has no reason phrase for it yet.
STATUS_CODES[294] ??= 'Partial Success';

/** Maximum length, because graphql-js quotes names and values, which may be as long as a body, in up to 100 messages. */
const longestMessage = 1000;

/** Sends the outcome of an operation. */
export function sendOutcome(outcome: Outcome, { request, reply, call, accepted }: GraphQLContext): FastifyReply {
  const { data, errors, extensions, stream, operation, headers = [] } = outcome;
  if (stream) {
    reply.headers(streamHeaders).type(stream.format.mediaType);
    return request.method === 'HEAD' ? reply.send() : reply.send(stream.body());
  }
  const mediaType = accepted.mediaType ?? mediaTypes.json;
  const status = statusOf(outcome, mediaType);
  if (errors) call.code ??= `${errors[0]?.extensions?.code}`;
  // The first of several mutations may have been executed, so a retry would execute it twice. An error without a path
  // concerns an operation that has not run.
  const isRisky = operation?.type === 'mutation' && !isSingleField(operation.node) && errors?.some(({ path }) => path);
  const mayRepeat = !isRisky || hasKey(request);
  // The quota's 429 must not cause a retry either; the field's error contains its waiting time. Nor may 429 be the status
  // of a response with data.
  const isPartial = data != null && mediaType === mediaTypes.response;
  if ((!mayRepeat || isPartial) && request.meter) request.meter.refusal = undefined;
  const text = JSON.stringify({ errors, data, extensions });
  if (accepted.prefersEvents && status < 400 && !request.meter?.refusal) return sendFramed(reply, text);
  for (const [name, value] of headers) reply.header(name, value);
  if (call.isReplay) reply.header('idempotent-replayed', 'true');
  // The longest waiting time of all errors, in seconds.
  const seconds = Math.max(0, ...(errors ?? []).map(({ extensions }) => Number(extensions?.retryAfter ?? 0)));
  if (seconds > 0 && mayRepeat) reply.header('retry-after', `${seconds}`);
  return reply.code(status).type(mediaType).send(text);
}

/** Sends a single result as a stream, which no cache may keep. */
function sendFramed(reply: FastifyReply, result: string): FastifyReply {
  reply.contentTag = null;
  return reply.headers(streamHeaders).type(serverSentEvents.mediaType).send(asOnlyEvent(result));
}

export function hasKey({ headers }: FastifyRequest): boolean {
  return headers[idempotencyKey] !== undefined;
}

/**
 * The HTTP status of a response (GraphQL over HTTP, edition of September 2026, "Status Codes"): 400 for what cannot be
 * parsed, 422 for what was parsed and refused, 294 for data with errors. A client that accepts only `application/json`
 * gets 200 for every well-formed request and 400 otherwise, as earlier drafts had it: by the status it could not tell
 * our response from an intermediary's, and existing clients rely on it.
 */
function statusOf({ data, errors, status = 200, failedAt = 'operation' }: Outcome, mediaType: string): number {
  // Apollo Server uses 500 for errors without a status.
  const asked = status === 500 ? Number(errors?.[0]?.extensions?.status) : status;
  if (asked !== 200 && asked !== 400) return asked;
  if (mediaType === mediaTypes.json) return failedAt === 'request' ? asked : 200;
  if (data !== undefined) return errors ? 294 : 200;
  return failedAt === 'document' ? 400 : 422;
}

/**
 * Returns the failure behind an error: a StoreError, or an internal error.
 *
 * @returns undefined for errors of graphql-js and Apollo Server about a document, an operation or variables
 */
function failureOf(error: GraphQLError): StoreError | undefined {
  const { originalError, extensions, path, message } = error;
  const known = storeErrorOf(originalError);
  if (known) return known;
  if (extensions.code !== undefined) return undefined;
  // A variable, for example null, can make an argument invalid: only the message tells that from a value that a scalar
  // cannot serialize.
  const isRefused = path === undefined || /^Argument "/.test(message);
  if (isRefused && (originalError ?? error) instanceof GraphQLError) return undefined;
  return internalError(originalError ?? error);
}

/** Formats an error: failures with code and status, internal ones without details, all others unchanged. */
export function formatError(error: GraphQLError): GraphQLFormattedError {
  const { message, locations, path } = error;
  const place = { ...(locations && { locations }), ...(path && { path }) };
  const failure = failureOf(error);
  if (failure) return { ...toFormatted(failure), ...place };
  // Apollo Server gives the errors of all validation rules the same code.
  const { code = error.extensions.code ?? 'BAD_USER_INPUT' } = (error.originalError as GraphQLError)?.extensions ?? {};
  // graphql-js provides no other way to detect it.
  const isTooLong = /^Syntax Error: Document contains more tha[nt] \d+ tokens/.test(message);
  const known = (isTooLong ? 'TOO_MANY_TOKENS' : code) as ErrorCode;
  const extensions = { code: known, status: httpStatusOf[known] ?? 400 };
  return { message: message.slice(0, longestMessage), ...place, extensions };
}

function toFormatted({ message, code, status, headers }: StoreError): GraphQLFormattedError {
  const retryAfter = headers['retry-after'];
  return { message, extensions: { code, status, ...(retryAfter && { retryAfter: Number(retryAfter) }) } };
}

/** Logs the failures of an operation with the request's id. */
export function logErrors(errors: readonly GraphQLError[], request: FastifyRequest): void {
  for (const error of errors) {
    const failure = failureOf(error);
    if (failure) logFailure(failure, request);
  }
}

/**
 * Sends a failure outside an operation (no key, no JSON) as a GraphQL response, with the media type that the client
 * prefers: with `application/json` it cannot know that the body of a 4xx is GraphQL's (GraphQL over HTTP, "Body").
 *
 * A client of events gets a rejected key as an event, because graphql-sse's client treats every status except 200 as a lost
 * connection, and retries silently.
 */
export function sendGraphQLError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = fail(error, request);
  reply.headers(failure.headers);
  const { prefersEvents, mediaType = mediaTypes.json } = acceptedBy(request);
  if (prefersEvents && (failure.status === 401 || failure.status === 403)) {
    sendFramed(reply, JSON.stringify({ errors: [toFormatted(failure)] }));
    return;
  }
  const isUnprocessable = error instanceof MalformedRequest && mediaType === mediaTypes.response;
  reply.code(isUnprocessable ? 422 : failure.status).type(mediaType);
  reply.serializer(JSON.stringify).send({ errors: [toFormatted(failure)] });
}
