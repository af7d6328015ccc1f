import { type ApolloServer, type GraphQLRequest, HeaderMap, type HTTPGraphQLRequest } from '@apollo/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseExactJson } from '../http/json.ts';
import type { GraphQLContext, Reading } from './context.ts';
import { type TrustedDocuments, trustedDocumentOf } from './trusted-documents.ts';

/**
 * Passes requests to Apollo Server and sends its responses. `@as-integrations/fastify` does the same, but creates a URL
 * and a map of all headers for every request, although Apollo Server reads only a few of them.
 */
export function apolloHandler(apollo: ApolloServer<GraphQLContext>, trusted: TrustedDocuments | undefined) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { caller, call } = request;
    const reading = readingOf(request, trusted);
    const { status, headers, body } = await apollo.executeHTTPGraphQLRequest({
      httpGraphQLRequest: toGraphQLRequest(request),
      context: async () => ({ caller, call, request, reading }),
    });
    for (const [name, value] of headers) reply.header(name, value);
    if (body.kind === 'chunked') throw new Error('Nothing in the schema can be deferred.');
    return reply.code(status ?? 200).send(body.string);
  };
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
