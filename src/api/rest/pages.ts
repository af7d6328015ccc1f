import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Int64 } from '../../storage/input/int64.ts';
import { type Page, writtenOnce } from '../../storage/input/page.ts';
import { contentTag } from '../http/caching.ts';
import { origin } from '../http/server.ts';

/**
 * Sends a page: a bare array, and `Link: <...>; rel="next"` (RFC 8288) when there are more items. Its entity tag changes
 * when the link comes: a client that keeps the tag and the body alone would never learn of it.
 */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: Page<{ id: Int64 }>): FastifyReply {
  const last = page.items.at(-1);
  if (page.hasNext && last) reply.header('link', `<${urlWith(request, 'after', last.id)}>; rel="next"`);
  // Each route has a serializer of its own: requests share the JSON only where they share the response schema.
  const serializer = reply.getSerializationFunction('200', 'application/json') as Serializer;
  const { json, tag } = writtenOnce(page.items, serializer, serializer, serialized);
  reply.contentTag = page.hasNext ? `${tag}+` : tag;
  return reply.type('application/json; charset=utf-8').send(json);
}

type Serializer = (items: never) => string;

function serialized(items: readonly unknown[], serializer: Serializer) {
  const json = serializer(items as never);
  return { json, tag: contentTag(json) };
}

/** This request's URL as the client sees it, with one query parameter set. */
function urlWith(request: FastifyRequest, parameter: string, value: Int64): string {
  const [, path = '', query = ''] = target.exec(request.originalUrl) ?? [];
  // The other parameters stay as the client wrote them.
  const others = query.split('&').filter((part) => part !== '' && nameOf(part) !== parameter);
  const search = [...others, `${parameter}=${value}`].join('&');
  return origin(request) + `${path}?${search}`.replace(notOfUri, encodeURIComponent);
}

/** What a client may send and RFC 3986 does not allow; some of it would end the `<...>` of a link. */
const notOfUri = /[^\w.~:/?@!$&'()*+,;=%-]|%(?![\da-f]{2})/gi;

// The path of a URL in absolute form (RFC 9112 section 3.2.2), too. The router treats `#` like `?`.
const target = /^(?:https?:\/\/[^/?#]*)?([^?#]*)[?#]?(.*)$/is;

function nameOf(part: string): string {
  const name = part.split('=', 1)[0] ?? '';
  return name.includes('%') ? ([...new URLSearchParams(`${name}=`).keys()][0] ?? '') : name;
}
