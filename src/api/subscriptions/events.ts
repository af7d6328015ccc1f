import { HeaderMap, type HTTPGraphQLRequest } from '@apollo/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseExactJson } from '../../storage/input/json.ts';
import { type EventStream, eventHeaders, frames } from './event-stream.ts';

/** GraphQL over server-sent events: operations whose client sends `Accept: text/event-stream`. */

/**
 * For Apollo Server, which lets only queries come by GET, and answers nothing but JSON. `lifecycle.ts` refuses mutations
 * by GET in its stead.
 */
export function asPost({ method, headers, body, query }: FastifyRequest): HTTPGraphQLRequest {
  const map = new HeaderMap([
    ['content-type', 'application/json'],
    ['accept', 'application/json'],
  ]);
  const { authorization } = headers;
  if (authorization) map.set('authorization', authorization);
  return { method: 'POST', headers: map, search: '', body: method === 'POST' ? body : bodyOf(query as object) };
}

function bodyOf(query: object): Record<string, unknown> {
  const entries = Object.entries(query).map(([name, value]) => {
    const isJson = (name === 'variables' || name === 'extensions') && typeof value === 'string';
    return [name, isJson ? parseExactJson(Buffer.from(value), `The ${name} are`) : value];
  });
  return Object.fromEntries(entries);
}

/** Sends a subscription. */
export function sendEvents(reply: FastifyReply, stream: EventStream): FastifyReply {
  reply.headers(eventHeaders);
  if (reply.request.method !== 'HEAD') return reply.send(stream);
  stream.destroy();
  return reply.send();
}

/** Sends what has one result: a query, a mutation, or an operation that was refused. Nobody asks for an event again. */
export function sendResult(reply: FastifyReply, result: string): FastifyReply {
  reply.contentTag = null;
  return reply.headers(eventHeaders).send(frames.next(result) + frames.complete);
}
