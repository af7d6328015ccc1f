import {
  type ApolloServer,
  type GraphQLRequest,
  HeaderMap,
  type HTTPGraphQLHead,
  type HTTPGraphQLRequest,
} from '@apollo/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FormattedExecutionResult } from 'graphql';
import { parseExactJson } from '../http/json.ts';
import type { GraphQLContext, Reading } from './context.ts';
import { type TrustedDocuments, trustedDocumentOf } from './trusted-documents.ts';

/**
 * Passes requests to Apollo Server and sends its responses. `@as-integrations/fastify` does the same, but creates a URL
 * and a map of all headers for every request, although Apollo Server reads only a few of them.
 */
export function apolloHandler(apollo: Apollo, { trusted, stringify }: HandlerOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { caller, call } = request;
    const reading = readingOf(request, trusted);
    if (isOrdinary(request)) {
      const { query, variables, operationName } = request.body;
      const extensions = { persistedQuery: { version: 1, sha256Hash: `text:${reading?.document ?? query}` } };
      const contextValue = { caller, call, request, reading: undefined };
      const { http, body } = await apollo.ordinary.executeOperation(
        { variables: variables ?? undefined, operationName: operationName ?? undefined, extensions },
        { contextValue },
      );
      if (body.kind === 'incremental') throw noStream();
      return send(reply, http, stringify(body.singleResult));
    }
    const { body, ...http } = await apollo.any.executeHTTPGraphQLRequest({
      httpGraphQLRequest: toGraphQLRequest(request),
      context: async () => ({ caller, call, request, reading }),
    });
    if (body.kind === 'chunked') throw noStream();
    return send(reply, http, body.string);
  };
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
  return reply.code(status ?? 200).send(text);
}

const noStream = () => new Error('Nothing in the schema can be deferred.');

/**
 * True for what all but a few clients send: a POST of JSON whose members have the right types, for an answer in JSON.
 * Apollo Server need not check that again (its part for HTTP costs as much as the operation of a small request), nor
 * for CSRF: without a preflight, no foreign page can send a body of this type.
 */
function isOrdinary(request: FastifyRequest): request is FastifyRequest & { body: OrdinaryBody } {
  const { method, headers, body } = request;
  if (method !== 'POST' || !(headers.accept === undefined || plainJson.includes(headers.accept))) return false;
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Media types in `Accept` for which the answer is `application/json`. */
export const plainJson = ['*/*', 'application/json'];

interface OrdinaryBody {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
}

/** True for a browser's navigation, which gets the page without a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return isRead(method) && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * CSRF prevention: one of these headers, or a content type that no form has, shows that no foreign page made a browser
 * send the request. None of them is sent across origins without a preflight. GET requests of ordinary clients have
 * `Authorization`.
 */
export const preventionHeaders = ['authorization', 'apollo-require-preflight', 'x-apollo-operation-name'];
const known = ['accept', 'content-type', ...preventionHeaders];

function toGraphQLRequest({ method, url, headers, body }: FastifyRequest): HTTPGraphQLRequest {
  const map = new HeaderMap();
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
