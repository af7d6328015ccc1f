import type { IncomingHttpHeaders } from 'node:http';
import {
  multipart,
  type StreamFormat,
  serverSentEvents,
} from '../subscriptions/format.ts';

// A request of GraphQL over HTTP: what its client accepts, its parameters, and
// the status of its response.

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
const multipartSubscription =
  /^\s*multipart\/mixed\s*;(?:.*;)?\s*subscriptionSpec="?1\.0\b/i;

const onlyJson: Accepted = {
  mediaType: mediaTypes.json,
  stream: undefined,
  prefersEvents: false,
};

/**
 * Reads `Accept`. @param acceptableOf returns the media types that the client
 * accepts, best first
 */
export function acceptedBy(
  accept: string | undefined,
  acceptableOf: (offered: string[]) => string[],
): Accepted {
  // Negotiating costs more than comparing, and nearly all clients of
  // `application/json` send one of these.
  if (accept === undefined || accept === '*/*' || accept === 'application/json')
    return onlyJson;
  const events = serverSentEvents.mediaType;
  const types = acceptableOf([...Object.values(mediaTypes), events]);
  const mediaType = types.find((type) => type !== events);
  if (/text\/event-stream/i.test(accept) && types.includes(events)) {
    const prefersEvents = types[0] === events;
    return {
      mediaType: prefersEvents ? mediaTypes.json : mediaType,
      stream: serverSentEvents,
      prefersEvents,
    };
  }
  // Clients of multipart accept a single result as JSON, even if `Accept` does
  // not list it.
  // A comma in a quoted string separates nothing.
  const ranges = accept.match(/(?:"[^"]*"|[^",])+/g) ?? [];
  const isMultipart = ranges.some((range) => multipartSubscription.test(range));
  if (isMultipart)
    return {
      mediaType: mediaType ?? mediaTypes.json,
      stream: multipart,
      prefersEvents: false,
    };
  return { mediaType, stream: undefined, prefersEvents: false };
}

/** The parts of a result that decide about its status. */
export interface Answered {
  data?: unknown;
  errors?:
    | readonly { extensions?: Record<string, unknown> | undefined }[]
    | undefined;
  /** The stage at which the request failed. */
  failedAt?: 'request' | 'document' | 'operation' | undefined;
  /**
   * The status from the executor; 500 when the status is that of the first
   * error.
   */
  status?: number | undefined;
}

/**
 * The HTTP status of a response (GraphQL over HTTP, edition of September 2026,
 * "Status Codes"): 400 for what cannot be parsed, 422 for what was parsed and
 * refused, 294 for errors beside `data`, also when `data` is null. A client
 * that accepts only `application/json` gets 200 for every well-formed request
 * and 400 otherwise, as earlier drafts had it: an `application/json` body with
 * another status may come from a proxy, and existing clients rely on the 200.
 */
export function statusOf(
  { data, errors, status = 200, failedAt = 'operation' }: Answered,
  mediaType: string,
): number {
  // Apollo Server uses 500 for errors without a status.
  const intended =
    status === 500 ? Number(errors?.[0]?.extensions?.status) : status;
  if (intended !== 200 && intended !== 400) return intended;
  if (mediaType === mediaTypes.json)
    return failedAt === 'request' ? intended : 200;
  if (data !== undefined) return errors ? 294 : 200;
  return failedAt === 'document' ? 400 : 422;
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
 * RequestError
 */
export type FindDocument = (parameters: RequestParameters) => RequestParameters;

/** A request that is refused before there is a document. */
export class RequestError extends Error {
  override readonly name = 'RequestError';

  /**
   * @param isUnprocessable true for JSON that is not a GraphQL over HTTP
   *   request: 422 rather than 400
   */
  constructor(
    readonly code:
      | 'BAD_USER_INPUT'
      | 'UNSUPPORTED_MEDIA_TYPE'
      | 'PERSISTED_QUERY_NOT_SUPPORTED'
      | 'OPERATION_NOT_TRUSTED',
    message: string,
    readonly isUnprocessable = false,
  ) {
    super(message);
  }
}

const malformed = (message: string) =>
  new RequestError('BAD_USER_INPUT', message, true);

export interface ParametersOptions {
  /** Parses `variables` and `extensions` of a GET request. */
  parseJson(text: string, name: string): unknown;
  /** Finds the document that a request names; without it, only texts run. */
  findDocument?: FindDocument | undefined;
}

/**
 * Reads the parameters of a request. CSRF prevention is the server's: it must
 * require a header that foreign pages cannot send without a preflight.
 *
 * @param request its query is parsed to texts, its body to JSON
 * @throws RequestError, and the error of `parseJson`
 */
export function parametersOf(
  request: {
    method: string;
    headers: IncomingHttpHeaders;
    query: unknown;
    body: unknown;
  },
  { parseJson, findDocument }: ParametersOptions,
): RequestParameters {
  const given =
    request.method === 'POST'
      ? request.body
      : searchParameters(request.query, request.headers, parseJson);
  if (Array.isArray(given)) {
    throw malformed(
      'The body must be one operation, a JSON object: a list of them is not accepted.',
    );
  }
  if (!isObject(given)) {
    throw malformed(
      'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.',
    );
  }
  const parameters: RequestParameters = {
    query: parameterIn(given, 'query', isString, 'a string') || undefined,
    documentId:
      given.documentId === '' ? undefined : (given.documentId ?? undefined),
    operationName: parameterIn(given, 'operationName', isString, 'a string'),
    variables: parameterIn(given, 'variables', isObject, 'an object'),
    extensions: parameterIn(given, 'extensions', isObject, 'an object'),
  };
  const found = findDocument ? findDocument(parameters) : parameters;
  if (found.query !== undefined || found.extensions?.persistedQuery)
    return found;
  throw malformed('There is no `query`: it must be the text of an operation.');
}

const isString = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parameterIn<Value>(
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
function searchParameters(
  query: unknown,
  { 'content-type': type }: IncomingHttpHeaders,
  parseJson: ParametersOptions['parseJson'],
): Record<string, unknown> {
  if (type && !/^application\/json\s*(?:;|$)/i.test(type)) {
    const message =
      'A GET request must have no Content-Type other than application/json.';
    throw new RequestError('UNSUPPORTED_MEDIA_TYPE', message);
  }
  const given = Object.entries(query as object).filter(
    ([, value]) => value !== '',
  );
  const entries = given.map(([name, value]) => {
    const isJson =
      (name === 'variables' || name === 'extensions') && isString(value);
    return [name, isJson ? parseJson(value, name) : value];
  });
  return Object.fromEntries(entries);
}
