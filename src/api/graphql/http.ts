import {
  type ApolloServer,
  type GraphQLRequest,
  HeaderMap,
  type HTTPGraphQLHead,
  type HTTPGraphQLRequest,
} from '@apollo/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FormattedExecutionResult } from 'graphql';
import { StoreError } from '../../errors.ts';
import { parseExactJson } from '../../storage/input/json.ts';
import { isRecord } from '../../storage/input/record.ts';
import { isRead } from '../http/operation.ts';
import { asPost, sendEvents, sendResult } from '../subscriptions/events.ts';
import type { Events, GraphQLContext, Reading } from './context.ts';
import { acceptedBy, isPlain, type MediaType, mediaTypes } from './media-types.ts';
import { partialSuccess, statusOf } from './status.ts';
import { assertDocument, type TrustedDocuments, trustedDocumentOf } from './trusted-documents.ts';

/**
 * Passes requests to Apollo Server and sends its responses. `@as-integrations/fastify` does the same, but creates a URL
 * and a map of all headers for every request, although Apollo Server reads only a few of them.
 */
export function apolloHandler(apollo: Apollo, options: HandlerOptions) {
  return (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const reading = readingOf(request, options.trusted);
    return isOrdinary(request)
      ? executeOrdinary(apollo, options, { request, reply, reading })
      : executeAny(apollo, options, { request, reply, reading });
  };
}

interface Exchange<Request extends FastifyRequest = FastifyRequest> {
  request: Request;
  reply: FastifyReply;
  reading: Reading | undefined;
}

async function executeOrdinary(
  { ordinary }: Apollo,
  { stringify }: HandlerOptions,
  { request, reply, reading }: Exchange<FastifyRequest & { body: OrdinaryBody }>,
): Promise<FastifyReply> {
  const { caller, call } = request;
  const { query, variables, operationName } = request.body;
  const extensions = { persistedQuery: { version: 1, sha256Hash: `text:${reading?.document ?? query}` } };
  const mediaType = mediaTypes.json;
  const contextValue = { caller, call, request, reply, reading: undefined, events: undefined, mediaType };
  const { http, body } = await ordinary.executeOperation(
    { variables: variables ?? undefined, operationName: operationName ?? undefined, extensions },
    { contextValue },
  );
  if (body.kind === 'incremental') throw noStream();
  return send(reply, http, stringify(body.singleResult));
}

async function executeAny(
  { any }: Apollo,
  { trusted }: HandlerOptions,
  { request, reply, reading }: Exchange,
): Promise<FastifyReply> {
  const { caller, call } = request;
  const accepted = acceptedBy(request);
  const mediaType = accepted.prefersEvents ? mediaTypes.json : accepted.mediaType;
  if (!mediaType) throw notAcceptable();
  const events: Events | undefined = accepted.events ? { lastEventId: lastEventIdOf(request) } : undefined;
  const { body, ...http } = await any.executeHTTPGraphQLRequest({
    httpGraphQLRequest: events ? asPost(request) : toGraphQLRequest(request, mediaType),
    context: async () => {
      if (!trusted) assertDocument(request);
      return { caller, call, request, reply, reading, events, mediaType };
    },
  });
  if (body.kind === 'chunked') throw noStream();
  if (events?.refusal) throw events.refusal;
  if (events?.stream) return sendEvents(reply, events.stream);
  const isFailure = (http.status ?? 200) >= 400;
  // What Apollo Server refuses before it is an operation passes none of our hooks.
  if (isFailure && call.code === undefined) {
    call.code = JSON.parse(body.string).errors[0].extensions.code;
    return send(reply, refusalBefore(http, accepted.mediaType ?? mediaTypes.json), body.string);
  }
  if (accepted.prefersEvents && !isFailure && !request.meter?.refusal) return sendResult(reply, body.string);
  return send(reply, http, body.string);
}

function refusalBefore({ status: asked, headers }: HTTPGraphQLHead, mediaType: MediaType): HTTPGraphQLHead {
  headers.set('content-type', mediaType);
  return { headers, status: statusOf({ mediaType, asked, failedAt: 'request', hasData: false, hasErrors: true }) };
}

export interface Apollo {
  any: ApolloServer<GraphQLContext>;
  /** Executes ordinary requests: with the cache below, whose hashes no client can send. */
  ordinary: ApolloServer<GraphQLContext>;
}

/**
 * Apollo Server identifies a text by its SHA-256, which it computes for every request, unless the client sends a hash.
 * Ordinary requests have the text itself in the place of the hash, marked so that no text is taken for a hash.
 */
export const textsForHashes = {
  get: (key: string) => key.slice('apq:text:'.length),
};

export interface HandlerOptions {
  trusted: TrustedDocuments | undefined;
  stringify(result: FormattedExecutionResult): string;
}

function send(reply: FastifyReply, { status, headers }: HTTPGraphQLHead, text: string): FastifyReply {
  for (const [name, value] of headers) reply.header(name, value);
  if (status === 294) reply.raw.statusMessage = partialSuccess;
  return reply.code(status ?? 200).send(text);
}

const noStream = () => new Error('Nothing in the schema can be deferred.');

/** Apollo Server would notice too, but only after a mutation has run. */
function notAcceptable(): StoreError {
  const message = '`Accept` must name application/graphql-response+json or application/json, or text/event-stream.';
  return new StoreError('NOT_ACCEPTABLE', message);
}

function lastEventIdOf({ headers }: FastifyRequest): string | undefined {
  return headers['last-event-id'] as string | undefined;
}

/**
 * True for what all but a few clients send: a POST of JSON whose members have the right types, for an answer in JSON.
 * Apollo Server need not check that again (its part for HTTP costs as much as the operation of a small request), nor
 * for CSRF: without a preflight, no foreign page can send a body of this type.
 */
function isOrdinary(request: FastifyRequest): request is FastifyRequest & { body: OrdinaryBody } {
  const { method, headers, body } = request;
  if (method !== 'POST' || !isPlain(headers.accept)) return false;
  if (!isRecord(body)) return false;
  const { query, variables, operationName, extensions } = body;
  return (
    typeof query === 'string' &&
    query !== '' &&
    (variables == null || isRecord(variables)) &&
    (operationName == null || typeof operationName === 'string') &&
    (extensions == null || (isRecord(extensions) && !extensions.persistedQuery))
  );
}

interface OrdinaryBody {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
}

/** True for a browser's navigation, which gets the page without a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return isRead(method) && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}

/**
 * CSRF prevention: one of these headers, or a content type that no form has, shows that no foreign page made a browser
 * send the request. None of them is sent across origins without a preflight. GET requests of ordinary clients have
 * `Authorization`.
 */
export const preventionHeaders = ['authorization', 'apollo-require-preflight', 'x-apollo-operation-name'];
const known = ['content-type', ...preventionHeaders];

function toGraphQLRequest({ method, url, headers, body }: FastifyRequest, mediaType: MediaType): HTTPGraphQLRequest {
  const map = new HeaderMap([['accept', mediaType]]);
  for (const name of known) {
    const value = headers[name];
    if (value) map.set(name, `${value}`);
  }
  const [, search = ''] = /\?([^#]*)/.exec(url) ?? [];
  return { method: isRead(method) ? 'GET' : method, headers: map, search, body };
}

/** @throws StoreError BAD_USER_INPUT, OPERATION_NOT_TRUSTED */
function readingOf(request: FastifyRequest, trusted: TrustedDocuments | undefined): Reading | undefined {
  const isGet = isRead(request.method);
  if (!trusted && !isGet) return undefined;
  const reading: Reading = {};
  if (trusted) reading.document = trustedDocumentOf(trusted, request);
  // Apollo Server parses the variables of a GET request with JSON.parse, which loses digits of an int64.
  const { variables } = request.query as { variables?: unknown };
  if (isGet && typeof variables === 'string') {
    reading.variables = parseExactJson(Buffer.from(variables), 'The variables are') as Record<string, unknown>;
  }
  return reading;
}

/** Replaces the values of Apollo Server before it uses them. */
export function useReading(graphqlRequest: GraphQLRequest, reading: Reading | undefined): void {
  if (!reading) return;
  if (reading.variables) graphqlRequest.variables = reading.variables;
  if (reading.document !== undefined) {
    graphqlRequest.query = reading.document;
    graphqlRequest.extensions = {};
  }
}
