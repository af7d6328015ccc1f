import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../access/keys/authenticator.ts';
import { StoreError } from '../../errors.ts';
import { isRecord, parseExactJson } from '../../storage/input/json.ts';
import { acceptedTypes, isRead } from '../http/headers.ts';
import type { RequestCall } from '../http/lifecycle.ts';
import { type EventStream, type Framing, serverSentEvents } from '../subscriptions/event-stream.ts';

/** Reads the HTTP request of an operation: what its client accepts, and its parameters (GraphQL over HTTP, "Request"). */

/** Media types of responses. The second says that its body is GraphQL's whatever the status is. */
export const mediaTypes = {
  json: 'application/json; charset=utf-8',
  response: 'application/graphql-response+json; charset=utf-8',
} as const;

export type MediaType = (typeof mediaTypes)[keyof typeof mediaTypes];

const eventStream = serverSentEvents.mediaType;

/** A stream of results, for a client that accepts one. */
export interface Events {
  readonly framing: Framing;
  /** The last event that the client has seen (WHATWG HTML, section 9.2.4): it wants those after it. */
  readonly lastEventId: string | undefined;
  /** The open stream, if the operation is a subscription. */
  stream?: EventStream;
  /** Why there is no stream, if that has an HTTP status of its own. */
  refusal?: StoreError;
}

/** Chooses how results are framed. */
export function eventsOf({ headers }: FastifyRequest): Events {
  return { framing: serverSentEvents, lastEventId: headers['last-event-id'] as string | undefined };
}

/** The context of resolvers. */
export interface GraphQLContext {
  readonly caller: Caller | null;
  readonly call: RequestCall;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** undefined when the client does not accept events. */
  readonly events: Events | undefined;
  /** The media type of the response. */
  readonly mediaType: MediaType;
  /** Settles the quota of an operation that was charged as a whole; undefined when its fields are charged one by one. */
  settle?: () => Promise<void>;
}

/** What a client accepts. */
export interface Accepted {
  /** The media type that it prefers; undefined when it accepts none of them. */
  mediaType: MediaType | undefined;
  /** Wildcards do not count: a subscription needs a client that asks for events. */
  events: boolean;
  /** True when even a single result is to be an event. */
  prefersEvents: boolean;
}

const onlyJson: Accepted = { mediaType: mediaTypes.json, events: false, prefersEvents: false };
const all = [...Object.values(mediaTypes), eventStream] as const;

/** Reads `Accept`. */
export function acceptedBy(request: Pick<FastifyRequest, 'headers'>): Accepted {
  const { accept } = request.headers;
  // Negotiating costs more than comparing, and nearly all clients of `application/json` send one of these.
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return onlyJson;
  const types = acceptedTypes(request, all);
  const events = /text\/event-stream/i.test(accept) && types.includes(eventStream);
  return {
    mediaType: types.find((type) => type !== eventStream),
    events,
    prefersEvents: events && types[0] === eventStream,
  };
}

/** True for a browser's navigation, which gets the page without a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return isRead(method) && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}

/** True for a client that wants to speak graphql-ws, for example. */
export function isWebSocket({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** A request that is JSON, but not a request of GraphQL over HTTP. */
export class MalformedRequest extends StoreError {}

const malformed = (message: string) => new MalformedRequest('BAD_USER_INPUT', message);

/** The parameters of a request; what is null or empty is absent. */
export interface RequestParameters {
  query?: string | undefined;
  documentId?: unknown;
  operationName?: string | undefined;
  variables?: Record<string, unknown> | undefined;
  extensions?: Record<string, unknown> | undefined;
}

/**
 * Reads the parameters of a request. Apollo Server's own part for HTTP is not used: it loses digits of an int64 in the
 * variables of a GET request, and costs as much as a small operation. Nor is its CSRF prevention needed: every request
 * has `Authorization`, which no foreign page can make a browser send without a preflight.
 *
 * @throws StoreError BAD_USER_INPUT, UNSUPPORTED_MEDIA_TYPE
 */
export function parametersOf(request: FastifyRequest): RequestParameters {
  const given = request.method === 'POST' ? request.body : searchParameters(request);
  if (Array.isArray(given)) {
    throw malformed('The body must be one operation, a JSON object: a list of them is not accepted.');
  }
  if (!isRecord(given)) {
    throw malformed('The body must be a JSON object with a member `query`, sent with Content-Type: application/json.');
  }
  return {
    query: memberOf(given, 'query', isString, 'a string') || undefined,
    documentId: given.documentId === '' ? undefined : (given.documentId ?? undefined),
    operationName: memberOf(given, 'operationName', isString, 'a string'),
    variables: memberOf(given, 'variables', isRecord, 'an object'),
    extensions: memberOf(given, 'extensions', isRecord, 'an object'),
  };
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
    return [name, isJson ? parseExactJson(Buffer.from(value), `The ${name} are`) : value];
  });
  return Object.fromEntries(entries);
}

/** @throws StoreError when the request names no document, or one that is not available */
export function assertDocument({ query, documentId, extensions }: RequestParameters): void {
  if (query !== undefined || extensions?.persistedQuery) return;
  if (documentId === undefined) throw malformed('There is no `query`: it must be the text of an operation.');
  // Clients send the text then. With a text a `documentId` is ignored, as all unknown parameters are.
  const message = 'No documents are registered here (TRUSTED_DOCUMENTS): send the text as `query`.';
  throw new MalformedRequest('PERSISTED_QUERY_NOT_SUPPORTED', message);
}
