import type { FastifyRequest } from 'fastify';
import { acceptedTypes } from '../http/accepted-types.ts';

/** Media types of answers. The second says that its body is GraphQL's whatever the status is. */
export const mediaTypes = {
  json: 'application/json; charset=utf-8',
  response: 'application/graphql-response+json; charset=utf-8',
} as const;

export type MediaType = (typeof mediaTypes)[keyof typeof mediaTypes];

/** Of server-sent events. */
export const eventStream = 'text/event-stream; charset=utf-8';

const all = [...Object.values(mediaTypes), eventStream] as const;

/** What a client takes. */
export interface Accepted {
  /** Which of the two it prefers; undefined when it takes neither. */
  mediaType: MediaType | undefined;
  /** Wildcards do not count: a subscription is for those who ask for events. */
  events: boolean;
  /** True when even what has one result is to be an event. */
  prefersEvents: boolean;
}

const json: Accepted = { mediaType: mediaTypes.json, events: false, prefersEvents: false };

/** Reads `Accept`. */
export function acceptedBy(request: Pick<FastifyRequest, 'headers'>): Accepted {
  const { accept } = request.headers;
  if (isPlain(accept)) return json;
  const types = acceptedTypes(request, all);
  const events = /text\/event-stream/i.test(`${accept}`) && types.includes(eventStream);
  return {
    mediaType: types.find((type) => type !== eventStream),
    events,
    prefersEvents: events && types[0] === eventStream,
  };
}

/** Negotiating costs more than looking, and nearly all clients that want `application/json` send one of these. */
export function isPlain(accept: string | undefined): boolean {
  return accept === undefined || accept === '*/*' || accept === 'application/json';
}
