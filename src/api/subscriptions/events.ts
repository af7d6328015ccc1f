import type { FastifyReply } from 'fastify';
import { type EventStream, eventHeaders, frames } from './event-stream.ts';

/** GraphQL over server-sent events: operations whose client sends `Accept: text/event-stream`. */

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
