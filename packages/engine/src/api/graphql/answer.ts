import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
} from 'graphql';
import { idempotencyHeader } from '../../access/idempotency/idempotency-key.ts';
import {
  type ErrorCode,
  httpStatusOf,
  internalError,
  StoreError,
} from '../../errors.ts';
import { logFailure, toLoggedFailure } from '../http/failures.ts';
import { acceptedTypes, acceptOf, listOf } from '../http/negotiation.ts';
import type { EventStream } from '../subscriptions/event-stream.ts';
import {
  multipart,
  type StreamFormat,
  serverSentEvents,
  streamHeaders,
} from '../subscriptions/format.ts';
import { sendStream } from '../subscriptions/subscriptions.ts';
import type { Accepted, GraphQLContext } from './context.ts';

/**
 * Media types of responses. The second says that its body is GraphQL's whatever
 * the status is.
 */
export const mediaTypes = {
  json: 'application/json; charset=utf-8',
  response: 'application/graphql-response+json; charset=utf-8',
} as const;

/**
 * Anchored, because a search would take a time that grows with the square of
 * the header's length.
 */
const multipartRange =
  /^\s*multipart\/mixed\s*;(?:.*;)?\s*subscriptionSpec="?1\.0\b/i;

const onlyJson: Accepted = {
  mediaType: mediaTypes.json,
  stream: undefined,
  prefersEvents: false,
};

/** The formats that a client accepts, by its `Accept`. */
export function acceptedIn(request: Pick<FastifyRequest, 'headers'>) {
  const accept = acceptOf(request);
  // Negotiating costs more than comparing, and nearly all clients of
  // `application/json` send one of these.
  if (accept === undefined || accept === '*/*' || accept === 'application/json')
    return onlyJson;
  const events = serverSentEvents.mediaType;
  const types = acceptedTypes(request, [...Object.values(mediaTypes), events]);
  const isMultipart = listOf(accept).some((one) => multipartRange.test(one));
  const namesEvents = /text\/event-stream/i.test(accept);
  let stream: StreamFormat | undefined;
  if (isMultipart) stream = multipart;
  if (namesEvents && types.includes(events)) stream = serverSentEvents;
  const prefersEvents = stream === serverSentEvents && types[0] === events;
  let mediaType = types.find((type) => type !== events);
  // Clients of streams accept a single result as JSON, even if `Accept` does not
  // list it.
  if (stream && (prefersEvents || !mediaType)) mediaType = mediaTypes.json;
  return { mediaType, stream, prefersEvents };
}

/** The error for JSON that is not a request of GraphQL over HTTP: a 422. */
export class Unprocessable extends StoreError {}

/** The outcome of a request. */
export interface Outcome {
  data?: unknown;
  /** The executor's status, or `statusOfFirstError`. */
  status?: number;
  /** As they are sent. */
  errors?: readonly GraphQLFormattedError[];
  /** The errors behind them, which are logged. */
  failures?: readonly GraphQLError[];
  /** The headers from Apollo Server. */
  headers?: Iterable<[string, string]>;
  /** The events of a subscription, instead of data. */
  stream?: EventStream;
  /** From plugins. */
  extensions?: unknown;
}

export function outcomeOf(
  result: Omit<Outcome, 'errors'> & Pick<ExecutionResult, 'errors'>,
): Outcome {
  const { errors: failures } = result;
  if (!failures) return result as Outcome;
  return {
    ...result,
    failures,
    errors: failures.map(formatError),
  };
}

/**
 * Apollo Server's status for errors without one: the first error has the status
 * of the answer.
 */
const statusOfFirstError = 500;

/** @param failure of an operation that has not run */
export function refused(failure: Error): Outcome {
  return outcomeOf({
    errors: [graphQLErrorOf(failure)],
    status: statusOfFirstError,
  });
}

export function graphQLErrorOf(failure: Error) {
  if (failure instanceof GraphQLError) return failure;
  return new GraphQLError(failure.message, { originalError: failure });
}

/**
 * Maximum length, because graphql-js quotes names and values, which may be as
 * long as a body, in up to 100 messages.
 */
const longestMessage = 1000;

/**
 * Returns the failure behind an error: a StoreError, or an internal error.
 *
 * @returns undefined for errors of graphql-js and Apollo Server about a
 *   document, an operation or variables
 */
function publicErrorOf(error: GraphQLError) {
  const { originalError, extensions, path, message } = error;
  if (originalError instanceof StoreError) return originalError;
  if (extensions.code !== undefined) return undefined;
  // graphql-js reports an argument that a variable makes invalid like a field
  // that failed to serialize. Only the message, `Argument "...`, differs.
  const isRefused = path === undefined || /^Argument "/.test(message);
  const cause = originalError ?? error;
  if (isRefused && cause instanceof GraphQLError) return undefined;
  return internalError(cause);
}

/**
 * Formats an error: failures with code and status, internal ones without
 * details, all others unchanged.
 */
export function formatError(error: GraphQLError): GraphQLFormattedError {
  const { locations, path } = error;
  const failure = publicErrorOf(error);
  if (failure) return { ...toFormatted(failure), locations, path };
  const code = errorCode(error);
  return {
    message: error.message.slice(0, longestMessage),
    locations,
    path,
    extensions: { code, status: httpStatusOf[code] ?? 400 },
  };
}

/** graphql-js provides no other way to detect it. */
const tooLong = /^Syntax Error: Document contains more tha[nt] \d+ tokens/;

/** The code of an error of graphql-js or Apollo Server. */
function errorCode(error: GraphQLError) {
  const { message, extensions, originalError } = error;
  if (tooLong.test(message)) return 'TOO_MANY_TOKENS';
  const { code = 'BAD_USER_INPUT' } = extensions;
  // Apollo Server gives the errors of all validation rules this code.
  const isOfRule = code === 'GRAPHQL_VALIDATION_FAILED';
  const ofRule = isOfRule && (originalError as GraphQLError)?.extensions.code;
  return (ofRule || code) as ErrorCode;
}

/** Formats a failure without its place in an operation. */
function toFormatted({
  message,
  code,
  status,
  details,
  retryAfter,
}: StoreError): GraphQLFormattedError {
  const extensions = { code, status, ...details, retryAfter };
  return { message, extensions };
}

/** Logs the failures of an operation with the request's id. */
export function logErrors(
  errors: readonly GraphQLError[] = [],
  request: FastifyRequest,
) {
  for (const error of errors) {
    const failure = publicErrorOf(error);
    if (failure) logFailure(failure, request);
  }
}

/** Logs the failures of a request, and answers it. */
export function sendOutcome(outcome: Outcome, context: GraphQLContext) {
  const { request, reply, call, accepted } = context;
  const { data, errors, extensions, stream } = outcome;
  logErrors(outcome.failures, request);
  if (stream) return sendStream(request, reply, stream);
  if (errors) call.code ??= `${errors[0]?.extensions?.code}`;
  const { mediaType = mediaTypes.json, prefersEvents } = accepted;
  const mayRepeat = mayBeRepeated(outcome, context);
  const status = statusOf(outcome, mediaType, mayRepeat);
  const result = {
    errors,
    data,
    extensions,
  };
  for (const [name, value] of outcome.headers ?? []) reply.header(name, value);
  if (call.isReplay) reply.header('idempotent-replayed', 'true');
  const waits = errors?.map((one) => Number(one.extensions?.retryAfter ?? 0));
  const seconds = Math.max(0, ...(waits ?? []));
  if (mayRepeat && seconds > 0) reply.header('retry-after', `${seconds}`);
  if (prefersEvents && status < 400) return sendFramed(reply, result);
  return sendJson(reply.code(status).type(mediaType), result);
}

/**
 * True when repeating cannot write twice: with an idempotency key, or when the
 * operation has stored nothing beside what failed: an error below a root field
 * says that this field has run.
 */
function mayBeRepeated(
  { data, errors = [] }: Outcome,
  { call, request }: GraphQLContext,
) {
  const hasKey = request.headers[idempotencyHeader] !== undefined;
  if (hasKey || !call.isWrite) return true;
  const depth = Math.max(0, ...errors.map(({ path = [] }) => path.length));
  const isOneOfSeveral = data || call.operation?.isSeries;
  return depth === 0 || (depth === 1 && !isOneOfSeveral);
}

const sendJson = (reply: FastifyReply, result: object) =>
  reply.serializer(JSON.stringify).send(result);

/**
 * The HTTP status of a response (GraphQL over HTTP, edition of September 2026,
 * "Status Codes"): 400 for what cannot be parsed, 422 for what was parsed and
 * refused, 294 for errors beside `data`, also when `data` is null. A client
 * that accepts only `application/json` gets 200 for every well-formed request,
 * as earlier drafts had it: an `application/json` body with another status may
 * come from a proxy, and existing clients rely on the 200.
 */
export function statusOf(
  { data, errors = [], failures = [], status = 200 }: Outcome,
  mediaType: string,
  mayRepeat: boolean,
) {
  const codes = errors.map(({ extensions }) => extensions?.code);
  // A 429 would cause a retry, and may not be the status of a response with
  // data. The field's error contains its waiting time.
  const isPartial = data && mediaType === mediaTypes.response;
  if (mayRepeat && !isPartial && codes.includes('TOO_MANY_REQUESTS'))
    return 429;
  let intended = status;
  if (status === statusOfFirstError)
    intended = Number(errors[0]?.extensions?.status);
  if (intended !== 200 && intended !== 400) return intended;
  if (mediaType === mediaTypes.json) return 200;
  if (data !== undefined) return errors.length > 0 ? 294 : 200;
  const [failure] = failures;
  return failure?.extensions.code === 'GRAPHQL_PARSE_FAILED' ? 400 : 422;
}

/** Sends a single result as a stream, which no cache may keep. */
function sendFramed(reply: FastifyReply, result: object) {
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
  const failure = toLoggedFailure(error, request);
  let { status } = failure;
  const { prefersEvents, mediaType = mediaTypes.json } = acceptedIn(request);
  const result = { errors: [toFormatted(failure)] };
  reply.headers(failure.headers);
  const isRejectedKey = status === 401 || status === 403;
  if (prefersEvents && isRejectedKey) return void sendFramed(reply, result);
  const isUnprocessable = failure instanceof Unprocessable;
  if (isUnprocessable && mediaType === mediaTypes.response) status = 422;
  sendJson(reply.code(status).type(mediaType), result);
}
