import { type ApolloServer, HeaderMap, type HTTPGraphQLRequest } from '@apollo/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createContext, type GraphQLContext } from './context.ts';

/**
 * Hands requests to Apollo Server and sends what it answers. `@as-integrations/fastify` does the same, but makes a URL
 * and a map of all headers for every request, of which Apollo Server looks at a few.
 */
export function apolloHandler(apollo: ApolloServer<GraphQLContext>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { status, headers, body } = await apollo.executeHTTPGraphQLRequest({
      httpGraphQLRequest: toGraphQLRequest(request),
      context: () => createContext(request),
    });
    for (const [name, value] of headers) reply.header(name, value);
    if (body.kind === 'chunked') throw new Error('Nothing in the schema can be deferred.');
    return reply.code(status ?? 200).send(body.string);
  };
}

/** HEAD is answered as GET is (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * One of these, or a content type that is no form's, shows that no foreign page made a browser send the request: none of
 * them is sent across origins without a preflight. `Authorization` is what GET requests of ordinary clients have.
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
