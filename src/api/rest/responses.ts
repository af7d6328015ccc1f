import type { FastifyReply, FastifyRequest } from 'fastify';
import { StoreError } from '../../errors.ts';
import { serialiseOnce } from '../../records/shared-items.ts';
import type { Int64 } from '../../validation/int64.ts';
import type { Page, Total } from '../../validation/page.ts';
import { origin } from '../http/addresses.ts';
import { contentTag } from '../http/caching.ts';
import { varyBy } from '../http/negotiation.ts';

/** @throws StoreError NOT_FOUND when there is no item */
export function orNotFound<Item>(item: Item | null, noun: string, id: string): Item {
  if (item === null) throw new StoreError('NOT_FOUND', `There is no ${noun} with the id ${id}.`);
  return item;
}

/**
 * Sends a page: a bare array, and `Link: <...>; rel="next"` (RFC 8288) when there are more items. The entity tag covers
 * the link, because a client that caches only tag and body would otherwise never see it.
 *
 * @param count counts the items on all pages, for a client that sends `Prefer: count=exact`
 */
export async function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page<{ id: Int64 }>,
  count?: () => Promise<Total>,
): Promise<FastifyReply> {
  if (count && asksForTotal.test(`${request.headers.prefer ?? ''}`)) {
    const total = await count();
    // A cache must not give the total to a request that did not ask for it (RFC 7240, section 2).
    varyBy(reply, 'Prefer');
    reply.header('x-total-count', `${total.count}`);
    reply.header('preference-applied', total.isExact ? 'count=exact' : 'count=estimated');
  }
  const last = page.items.at(-1);
  if (page.hasNext && last) reply.header('link', `<${urlWith(request, 'after', last.id)}>; rel="next"`);
  // Each route has its own serializer, so requests share the JSON only if they share the response schema.
  const serializer = reply.getSerializationFunction('200', 'application/json') as Serializer;
  const { json, tag } = serialiseOnce(page.items, serializer, serializer, serialized);
  reply.contentTag = page.hasNext ? `${tag}+` : tag;
  return reply.type('application/json; charset=utf-8').send(json);
}

/** One of several preferences, perhaps quoted or with parameters (RFC 7240, section 2). */
const asksForTotal = /(?:^|,)\s*count\s*=\s*(?:exact|"exact")\s*(?:[,;]|$)/i;

type Serializer = (items: never) => string;

function serialized(items: readonly unknown[], serializer: Serializer) {
  const json = serializer(items as never);
  return { json, tag: contentTag(json) };
}

/** The client's URL of this request, with one query parameter replaced. */
function urlWith(request: FastifyRequest, parameter: string, value: Int64): string {
  const [, path = '', query = ''] = target.exec(request.originalUrl) ?? [];
  // The other parameters stay as the client wrote them.
  const others = query.split('&').filter((part) => part !== '' && nameOf(part) !== parameter);
  const search = [...others, `${parameter}=${value}`].join('&');
  return origin(request) + `${path}?${search}`.replace(notOfUri, encodeURIComponent);
}

/** Characters that RFC 3986 forbids but clients may send. Some would end the `<...>` of a link. */
const notOfUri = /[^\w.~:/?@!$&'()*+,;=%-]|%(?![\da-f]{2})/gi;

// The path of a URL in absolute form (RFC 9112 section 3.2.2), too. The router treats `#` like `?`.
const target = /^(?:https?:\/\/[^/?#]*)?([^?#]*)[?#]?(.*)$/is;

function nameOf(part: string): string {
  const name = part.split('=', 1)[0] ?? '';
  return name.includes('%') ? ([...new URLSearchParams(`${name}=`).keys()][0] ?? '') : name;
}
