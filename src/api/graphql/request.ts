import type { FastifyRequest } from 'fastify';
import { StoreError } from '../../errors.ts';
import { isRecord } from '../../validation/validator.ts';
import { parseJson } from '../http/bodies.ts';
import { acceptedTypes, acceptOf, listOf } from '../http/negotiation.ts';
import {
  multipart,
  type StreamFormat,
  serverSentEvents,
} from '../subscriptions/format.ts';

// A request of GraphQL over HTTP: what its client accepts, and its parameters.

/**
 * Media types of responses. The second says that its body is GraphQL's whatever
 * the status is.
 */
export const mediaTypes = {
  json: 'application/json; charset=utf-8',
  response: 'application/graphql-response+json; charset=utf-8',
} as const;

/** The formats that a client accepts. */
export interface Accepted {
  /** The media type of a result; undefined when it accepts none. */
  mediaType: string | undefined;
  /**
   * The format of a subscription; undefined when the client names none.
   * Wildcards do not count.
   */
  stream: StreamFormat | undefined;
  /** True when a single result must be a server-sent event, too. */
  prefersEvents: boolean;
}

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
export function acceptedIn(request: Pick<FastifyRequest, 'headers'>): Accepted {
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

/** The parameters of a request. Null and empty ones are absent. */
export interface RequestParameters {
  query?: string | undefined;
  documentId?: unknown;
  operationName?: string | undefined;
  variables?: Record<string, unknown> | undefined;
  extensions?: Record<string, unknown> | undefined;
}

/**
 * Returns the parameters with the text of the document that they name. @throws
 * StoreError
 */
export type FindDocument = (parameters: RequestParameters) => RequestParameters;

/** The error for JSON that is not a request of GraphQL over HTTP: a 422. */
export class Unprocessable extends StoreError {}

const unprocessable = (message: string) =>
  new Unprocessable('BAD_USER_INPUT', message);

/**
 * Reads the parameters of a request.
 *
 * @param findDocument without it, only texts run
 * @throws StoreError
 */
export function readParameters(
  request: Pick<FastifyRequest, 'method' | 'headers' | 'query' | 'body'>,
  findDocument?: FindDocument,
): RequestParameters {
  let given = request.body;
  if (request.method !== 'POST') given = searchParameters(request);
  if (Array.isArray(given))
    throw unprocessable(
      'The body must be one operation, a JSON object: a list of them is not accepted.',
    );
  if (!isRecord(given))
    throw unprocessable(
      'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.',
    );
  const parameters: RequestParameters = {
    query: parameterIn(given, 'query', isString, 'a string') || undefined,
    documentId: given.documentId || undefined,
    operationName: parameterIn(given, 'operationName', isString, 'a string'),
    variables: parameterIn(given, 'variables', isRecord, 'an object'),
    extensions: parameterIn(given, 'extensions', isRecord, 'an object'),
  };
  const found = findDocument?.(parameters) ?? parameters;
  if (found.query || found.extensions?.persistedQuery) return found;
  // Its client then sends the text.
  if (found.documentId)
    throw new Unprocessable('PERSISTED_QUERY_NOT_SUPPORTED', noDocuments);
  throw unprocessable(
    'There is no `query`: it must be the text of an operation.',
  );
}

const noDocuments =
  'No documents are registered here: send the text as `query`.';

const isString = (value: unknown): value is string => typeof value === 'string';

function parameterIn<Value>(
  given: Record<string, unknown>,
  name: string,
  isValid: (value: unknown) => value is Value,
  type: string,
): Value | undefined {
  const value = given[name] ?? undefined;
  if (value === undefined || isValid(value)) return value;
  throw unprocessable(`\`${name}\` must be ${type}.`);
}

/** An empty parameter is an absent one (GraphQL over HTTP, "GET"). */
function searchParameters({
  query,
  headers: { 'content-type': type },
}: Pick<FastifyRequest, 'query' | 'headers'>): Record<string, unknown> {
  if (type && !/^application\/json\s*(?:;|$)/i.test(type))
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', noParameters);
  const given: Record<string, unknown> = { ...(query as object) };
  for (const [name, value] of Object.entries(given)) {
    const isJson = name === 'variables' || name === 'extensions';
    if (value === '') delete given[name];
    else if (isJson && isString(value))
      given[name] = parseJson(Buffer.from(value), `The ${name} are`);
  }
  return given;
}

const noParameters =
  'A GET request must have no Content-Type other than application/json.';
