import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { multipart, type StreamFormat, serverSentEvents } from '../../../packages/graphql-streams/src/format.ts';
import { StoreError } from '../../errors.ts';
import { isRecord, parseExactJson } from '../../storage/input/int64.ts';
import { acceptedTypes, isRead } from '../http/headers.ts';
import type { RequestCall } from '../http/lifecycle.ts';
import type { Operation } from './documents.ts';

/** Reads the HTTP request of an operation: accepted media types and parameters (GraphQL over HTTP, "Request"). */

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
    return [name, isJson ? parseExactJson(Buffer.from(value), `The ${name} are`) : value];
  });
  return Object.fromEntries(entries);
}

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<unknown, string>;

/** The prefix of a document identifier that is a SHA-256 (GraphQL over HTTP, draft appendix "Persisted Documents"). */
const prefix = 'sha256:';

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of GraphQL Code Generator writes it, or of
 * `sha256:` and hash. Every document is registered by its name in the manifest and by its SHA-256, with and without the
 * prefix.
 *
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifestIn(path))) {
    if (typeof document !== 'string') throw noManifest(path);
    const digest = hash('sha256', document);
    if (key.startsWith(prefix) && key !== `${prefix}${digest}`) {
      throw new Error(`${path} (TRUSTED_DOCUMENTS) has a document under ${key} whose SHA-256 is ${digest}.`);
    }
    trusted.set(key, document).set(digest, document).set(`${prefix}${digest}`, document);
  }
  return trusted;
}

function manifestIn(path: string): object {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (isRecord(manifest)) return manifest;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) {
      throw new Error(`${path} (TRUSTED_DOCUMENTS) cannot be read: ${(cause as Error).message}`, { cause });
    }
  }
  throw noManifest(path);
}

function noManifest(path: string): Error {
  return new Error(`${path} (TRUSTED_DOCUMENTS) is not a manifest: a JSON object of hash -> document.`);
}

/**
 * Finds the trusted document that a request names: by hash (`documentId`, with or without `sha256:`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text. A text and a `documentId`
 * must be the same document.
 *
 * @throws StoreError OPERATION_NOT_TRUSTED
 */
function trustedDocument(trusted: TrustedDocuments, { query, documentId, extensions }: RequestParameters): string {
  const { sha256Hash } = (extensions?.persistedQuery ?? {}) as { sha256Hash?: unknown };
  const document = trusted.get(query === undefined ? (documentId ?? sha256Hash) : hash('sha256', query));
  if (document === undefined) throw notTrusted('Only operations that were registered beforehand are run here.');
  if (query !== undefined && documentId !== undefined && trusted.get(documentId) !== document) {
    throw notTrusted('`query` and `documentId` are different documents: send one of them.');
  }
  return document;
}

const notTrusted = (message: string) => new StoreError('OPERATION_NOT_TRUSTED', message);
