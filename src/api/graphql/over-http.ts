import { STATUS_CODES } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import {
  asOnlyEvent,
  multipart,
  type StreamFormat,
  serverSentEvents,
  streamHeaders,
} from '../../../packages/graphql-streams/src/format.ts';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { type ErrorCode, httpStatusOf, internalError, StoreError, storeErrorOf } from '../../errors.ts';
import { isRecord } from '../../storage/input/check.ts';
import { fail, logFailure } from '../http/failures.ts';
import { acceptedTypes, isRead } from '../http/headers.ts';
import { parseJson } from '../http/input.ts';
import type { RequestCall } from '../http/lifecycle.ts';
import { isSingleField, type Operation } from './documents.ts';
import type { Outcome } from './operations.ts';
import { type TrustedDocuments, trustedDocument } from './trusted-documents.ts';

// Node.js has no reason phrase for it yet.
STATUS_CODES[294] ??= 'Partial Success';

/** GraphQL over HTTP: reads the media types and parameters of a request, and sends the outcome of its operation. */

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: RequestCall;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
  /** Set before execution. */
  operation?: Operation;
  /** Settles the quota of an operation that is charged as a whole; undefined when its root fields charge themselves. */
  settle?: (() => Promise<void>) | undefined;
}

/** Media types of responses. The second says that its body is GraphQL's whatever the status is. */
export const mediaTypes = {
  json: 'application/json; charset=utf-8',
  response: 'application/graphql-response+json; charset=utf-8',
} as const;

/** The formats that a client accepts. */
export interface Accepted {
  /** The media type of a result; undefined when it accepts none. */
  mediaType: string | undefined;
  /** The format of a subscription; undefined when the client names none. Wildcards do not count. */
  stream: StreamFormat | undefined;
  /** True when a single result must be a server-sent event, too. */
  prefersEvents: boolean;
}

const onlyJson: Accepted = { mediaType: mediaTypes.json, stream: undefined, prefersEvents: false };

/** Reads `Accept`. */
export function acceptedBy(request: Pick<FastifyRequest, 'headers'>): Accepted {
  const { accept } = request.headers;
  // Negotiating costs more than comparing, and nearly all clients of `application/json` send one of these.
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return onlyJson;
  const events = serverSentEvents.mediaType;
  const types = acceptedTypes(request, [...Object.values(mediaTypes), events]);
  const mediaType = types.find((type) => type !== events);
  if (/text\/event-stream/i.test(accept) && types.includes(events)) {
    const prefersEvents = types[0] === events;
    return { mediaType: prefersEvents ? mediaTypes.json : mediaType, stream: serverSentEvents, prefersEvents };
  }
  // Clients of multipart accept a single result as JSON, even if `Accept` does not list it.
  const isMultipart = /multipart\/mixed[^,]*;\s*subscriptionSpec="?1\.0\b/i.test(accept);
  if (isMultipart) return { mediaType: mediaType ?? mediaTypes.json, stream: multipart, prefersEvents: false };
  return { mediaType, stream: undefined, prefersEvents: false };
}

/** True for a browser's navigation, which gets the page without a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return isRead(method) && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}

/** True for a WebSocket upgrade, for example graphql-ws. */
export function isWebSocket({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** The error for JSON that is not a GraphQL over HTTP request. */
export class MalformedRequest extends StoreError {}

const malformed = (message: string) => new MalformedRequest('BAD_USER_INPUT', message);

/** The parameters of a request. Null and empty ones are absent. */
export interface RequestParameters {
  query?: string | undefined;
  documentId?: unknown;
  operationName?: string | undefined;
  variables?: Record<string, unknown> | undefined;
  extensions?: Record<string, unknown> | undefined;
}

/**
 * Reads the parameters of a request. Apollo Server's HTTP layer is not used: it loses digits of int64 variables in GET
 * requests, and costs as much as a small operation. Its CSRF prevention is not needed: every request has `Authorization`,
 * which foreign pages cannot send without a preflight.
 *
 * @param trusted the only documents that may run; any may when undefined
 * @throws StoreError BAD_USER_INPUT, UNSUPPORTED_MEDIA_TYPE, OPERATION_NOT_TRUSTED
 */
export function parametersOf(request: FastifyRequest, trusted: TrustedDocuments | undefined): RequestParameters {
  const given = request.method === 'POST' ? request.body : searchParameters(request);
  if (Array.isArray(given)) {
    throw malformed('The body must be one operation, a JSON object: a list of them is not accepted.');
  }
  if (!isRecord(given)) {
    throw malformed('The body must be a JSON object with a member `query`, sent with Content-Type: application/json.');
  }
  const parameters: RequestParameters = {
    query: memberOf(given, 'query', isString, 'a string') || undefined,
    documentId: given.documentId === '' ? undefined : (given.documentId ?? undefined),
    operationName: memberOf(given, 'operationName', isString, 'a string'),
    variables: memberOf(given, 'variables', isRecord, 'an object'),
    extensions: memberOf(given, 'extensions', isRecord, 'an object'),
  };
  if (trusted) return { ...parameters, query: trustedDocument(trusted, parameters), extensions: undefined };
  if (parameters.query !== undefined || parameters.extensions?.persistedQuery) return parameters;
  if (parameters.documentId === undefined) throw malformed('There is no `query`: it must be the text of an operation.');
  // Clients then send the text. With a text, `documentId` is ignored like all unknown parameters.
  const message = 'No documents are registered here (TRUSTED_DOCUMENTS): send the text as `query`.';
  throw new MalformedRequest('PERSISTED_QUERY_NOT_SUPPORTED', message);
}

const isString = (value: unknown): value is string => typeof value === 'string';

function memberOf<Value>(
  given: Record<string, unknown>,
  name: string,
  isValid: (value: unknown) => value is Value,
  type: string,
): Value | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (isValid(value)) return value;
  throw malformed(`\`${name}\` must be ${type}.`);
}

/** An empty parameter is an absent one (GraphQL over HTTP, "GET"). */
function searchParameters({ query, headers }: FastifyRequest): Record<string, unknown> {
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/json\s*(?:;|$)/i.test(type)) {
    const message = 'A GET request must have no Content-Type other than application/json.';
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message);
  }
  const given = Object.entries(query as object).filter(([, value]) => value !== '');
  const entries = given.map(([name, value]) => {
    const isJson = (name === 'variables' || name === 'extensions') && isString(value);
    return [name, isJson ? parseJson(Buffer.from(value), `The ${name} are`) : value];
  });
  return Object.fromEntries(entries);
}

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
function publicErrorOf(error: GraphQLError): StoreError | undefined {
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
  const failure = publicErrorOf(error);
  if (failure) return { ...toFormatted(failure), ...place };
  let { code = 'BAD_USER_INPUT' } = error.extensions;
  // Apollo Server gives the errors of all validation rules this code.
  if (code === 'GRAPHQL_VALIDATION_FAILED') code = (error.originalError as GraphQLError)?.extensions?.code ?? code;
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
    const failure = publicErrorOf(error);
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
