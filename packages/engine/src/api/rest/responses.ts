import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Call } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import { serialiseOnce } from '../../records/lists/reader.ts';
import { type ItemEvent, told } from '../../records/live-items.ts';
import type { ListEvent } from '../../records/live-list.ts';
import type { Int64 } from '../../validation/int64.ts';
import { cursorAt, type Page, type Total } from '../../validation/page.ts';
import {
  acceptedTypes,
  addTo,
  prefers,
  tagOf,
  varyBy,
} from '../http/negotiation.ts';
import { origin } from '../http/server.ts';
import {
  type StreamFormat,
  serverSentEvents,
} from '../subscriptions/format.ts';
import { lastEventIdOf, sendStream } from '../subscriptions/subscriptions.ts';

/**
 * Returns the item that was found.
 *
 * @throws StoreError NOT_FOUND when there is none
 */
export function orNotFound<Item>(
  item: Item | null,
  noun: string,
  id: string,
): Item {
  if (item === null)
    throw new StoreError('NOT_FOUND', `There is no ${noun} with the id ${id}.`);
  return item;
}

/** Node's clients refuse responses with more than 16 KiB of headers. */
const maxLinkLength = 12_000;

/**
 * Sends a page: a bare array, and `Link: <...>; rel="next"` (RFC 8288) when
 * there are more items, `rel="prev"` when there may be some before its own. Of
 * two links that are too long together, the first is sent. The entity tag covers
 * the links, because a client that caches only tag and body would otherwise
 * never see them.
 *
 * @param count counts the items on all pages, for a client that sends `Prefer:
 *   count=exact`
 */
export async function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page<{ id: Int64 }>,
  count?: () => Promise<Total>,
): Promise<FastifyReply> {
  if (count && prefers(request.headers.prefer, 'count', 'exact')) {
    const total = await count();
    // A cache must not give the total to a request that did not ask for it (RFC
    // 7240, section 2).
    varyBy(reply, 'Prefer');
    reply.header('x-total-count', `${total.count}`);
    const counted = total.isExact ? 'count=exact' : 'count=estimated';
    addTo(reply, 'preference-applied', counted);
  }
  // To ask would cost one more statement.
  const { hasNext, hasPrevious: mayHavePrevious } = page;
  const next = hasNext && cursorAt(page, -1);
  const previous = mayHavePrevious && cursorAt(page, 0);
  if (next || previous) {
    const links: string[] = [];
    const url = urlBefore(request);
    if (next)
      links.push(`<${url}after=${encodeURIComponent(next)}>; rel="next"`);
    if (previous)
      links.push(`<${url}before=${encodeURIComponent(previous)}>; rel="prev"`);
    const all = links.join(', ');
    reply.header('link', all.length > maxLinkLength ? links[0] : all);
  }
  // Each route has its own serializer, so requests share the JSON only if they
  // share the response schema.
  const serializer = serializerOf(reply);
  const { json, tag } = serialiseOnce(page.items, serializer, (items) => {
    const json = serializer(items as never);
    return { json, tag: tagOf(json) };
  });
  const shape = `${hasNext ? '+' : ''}${mayHavePrevious ? '-' : ''}`;
  reply.contentTag = `${tag}${shape}`;
  return reply.type('application/json; charset=utf-8').send(json);
}

function serializerOf(reply: FastifyReply) {
  const found = reply.getSerializationFunction('200', 'application/json');
  return found as (items: never) => string;
}

/**
 * Path and query, without the host of an absolute form (RFC 9112 section
 * 3.2.2). The router treats `#` like `?`.
 */
const locator = /^(?:https?:\/\/[^/?#]*)?([^?#]*).?(.*)/is;

/** The client's URL of this request, up to the place in the list. */
function urlBefore(request: FastifyRequest) {
  const [, path, given] = locator.exec(request.originalUrl) ?? [];
  // A second question mark belongs to the first name.
  const others = new URLSearchParams(`&${given}`);
  others.delete('after');
  others.delete('before');
  const query = others.size > 0 ? `${others}&` : '';
  return `${origin(request)}${path}?${query}`;
}

type Follow = (query: never, call: Call) => AsyncGenerator<ListEvent, void>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Follows the list of the route, for clients of `text/event-stream`.
     *
     * @param query validated by its schema
     */
    live?: Follow;
  }
}

/**
 * A message for each item, as a browser's `EventSource` reads them (WHATWG
 * HTML, section 9.2).
 */
const events: StreamFormat = {
  ...serverSentEvents,
  next: (item, id) => `id: ${id}\ndata: ${item}\n\n`,
  fail: (error) => `event: error\ndata: ${error}\n\n`,
  complete: '',
};

/**
 * Makes the route of a live list answer clients that prefer `text/event-stream`
 * to JSON with the list's events.
 */
export function offerEvents(route: RouteOptions) {
  const { handler, config: { live } = {} } = route;
  if (!live) return;
  route.handler = function (request, reply) {
    return prefersEvents(request, reply)
      ? follow(request, reply, live)
      : handler.call(this, request, reply);
  };
}

function prefersEvents(request: FastifyRequest, reply: FastifyReply) {
  if (!/event-stream/i.test(request.headers.accept ?? '')) return false;
  varyBy(reply, 'Accept');
  const offered = ['application/json', events.mediaType];
  const [best] = acceptedTypes(request, offered);
  return best === events.mediaType;
}

/**
 * @throws StoreError BAD_USER_INPUT, TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE;
 *   Unavailable
 */
async function follow(
  request: FastifyRequest,
  reply: FastifyReply,
  live: Follow,
): Promise<FastifyReply> {
  const { query, server } = request;
  const serialize = serializerOf(reply);
  // A list of one without its brackets, so that an item has the same bytes as
  // in a page.
  const jsonOf = (item: unknown) => serialize([item] as never).slice(1, -1);
  const frameOf = (item: ListEvent['items'][number]) => {
    if (!(told in item)) return events.next(jsonOf(item), item.id);
    const { id, name, [told]: value } = item as ItemEvent;
    const isRemoval = name === 'removed';
    const data = isRemoval ? `{"id":${value}}` : jsonOf(value);
    return `event: ${name}\n${events.next(data, id)}`;
  };
  const after = lastEventIdOf(request) ?? (query as { after?: Int64 }).after;
  const stream = await server.subscriptions.open(request, reply, {
    format: events,
    batches: live({ ...(query as object), after } as never, request.call),
    units: 1,
    readsMore: false,
    shareKey: live,
    framesOf: (items) => Buffer.from(items.map(frameOf).join('')),
    failureAsJson: (failure) => JSON.stringify(failure.toBody()),
  });
  return sendStream(request, reply, stream);
}
