import type { FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { type ErrorCode, httpStatusOf, internalError, StoreError } from '../../errors.ts';
import { logFailure, toStoreError } from '../http/errors.ts';
import { sendFramed } from '../subscriptions/event-stream.ts';
import { acceptedBy, eventsOf, MalformedRequest, mediaTypes } from './request.ts';

/** Messages of graphql-js quote names and values, which may be as long as a body, and there may be a hundred of them. */
const longestMessage = 1000;

/**
 * The failure behind an error: the store's own, or an internal one.
 *
 * @returns undefined for what graphql-js and Apollo Server say about a document, its operation or its variables
 */
function failureOf(error: GraphQLError): StoreError | undefined {
  const { originalError, extensions, path, message } = error;
  if (originalError instanceof StoreError) return originalError;
  if (extensions.code !== undefined) return undefined;
  // A variable, for example null, can make an argument invalid: only the message tells that from a value that a scalar
  // cannot serialize.
  const isRefused = path === undefined || /^Argument "/.test(message);
  if (isRefused && (originalError ?? error) instanceof GraphQLError) return undefined;
  return internalError(originalError ?? error);
}

/** Formats an error: failures with code and status, internal ones without details, all others in graphql-js's words. */
export function formatError(
  { message, locations, path }: GraphQLFormattedError,
  error: unknown,
): GraphQLFormattedError {
  const place = { ...(locations && { locations }), ...(path && { path }) };
  const failure = error instanceof GraphQLError ? failureOf(error) : internalError(error);
  if (failure) return { ...toFormatted(failure), ...place };
  const { code = 'BAD_USER_INPUT' } = (error as GraphQLError).extensions;
  // graphql-js has no other sign of it.
  const isTooLong = /^Syntax Error: Document contains more tha[nt] \d+ tokens/.test(message);
  const known = (isTooLong ? 'TOO_MANY_TOKENS' : code) as ErrorCode;
  const extensions = { code: known, status: httpStatusOf[known] ?? 400 };
  return { message: message.slice(0, longestMessage), ...place, extensions };
}

/** Formats an error of graphql-js. */
export const formatted = (error: GraphQLError): GraphQLFormattedError => formatError(error.toJSON(), error);

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
 * A client of events gets a refused key as an event: graphql-sse's client takes every status but 200 for a lost
 * connection, and would retry in silence.
 */
export function sendGraphQLError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = toStoreError(error, request.routeOptions.bodyLimit);
  logFailure(failure, request);
  if (request.call) request.call.code ??= failure.code;
  reply.headers(failure.headers);
  const accepted = acceptedBy(request);
  if (accepted.prefersEvents && (failure.status === 401 || failure.status === 403)) {
    sendFramed(reply, eventsOf(request).framing, JSON.stringify({ errors: [toFormatted(failure)] }));
    return;
  }
  const type = accepted.mediaType ?? mediaTypes.json;
  const isUnprocessable = error instanceof MalformedRequest && type === mediaTypes.response;
  reply.code(isUnprocessable ? 422 : failure.status).type(type);
  reply.serializer(JSON.stringify).send({ errors: [toFormatted(failure)] });
}

function toFormatted({ message, code, status, headers }: StoreError): GraphQLFormattedError {
  const retryAfter = headers['retry-after'];
  return { message, extensions: { code, status, ...(retryAfter && { retryAfter: Number(retryAfter) }) } };
}

/** The longest wait that any of the errors asks for, in seconds. */
export function retryAfter(errors: readonly GraphQLFormattedError[]): number {
  return Math.max(0, ...errors.map(({ extensions }) => Number(extensions?.retryAfter ?? 0)));
}
