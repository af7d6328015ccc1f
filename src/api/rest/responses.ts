import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { type ErrorCode, httpStatusOf, restCodes, StoreError } from '../../errors.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import { maxExactTotal, type Page, pageLimit, type Total } from '../../storage/input/page.ts';
import { serialiseOnce } from '../../storage/records/records.ts';
import { origin } from '../http/addresses.ts';
import { contentTag, varyBy } from '../http/headers.ts';

/** The specification's Error. */
const ErrorSchema = Type.Object(
  {
    code: Type.String({
      description: `Machine-readable error code: ${restCodes.join(', ')}.`,
      examples: ['BAD_USER_INPUT'],
    }),
    message: Type.String({ description: 'Human-readable description.' }),
    status: Type.Integer({ description: 'The HTTP status code of the response.', minimum: 400, maximum: 599 }),
  },
  { $id: 'Error', description: 'Any failure.' },
);

/** A response in OpenAPI. */
export interface Response {
  description: string;
  headers?: Record<string, object>;
  content?: { 'application/json': { schema: TSchema; example?: unknown } };
  /** `null` for a response without a body. */
  type?: 'null';
}

/** A documented success: a JSON body, with optional headers. */
export function success(schema: TSchema, description: string, headers?: Record<string, object>): Response {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema } } };
}

/** A documented page of a list. @param name of the list's component @param isCounted whether the list has a total */
export function pageOf(item: TSchema, name: string, description: string, isCounted = false): Response {
  const schema = Type.Array(item, {
    $id: name,
    description: `${description} Ascending by id.`,
    maxItems: pageLimit.max,
  });
  const Link = text('RFC 8288: the address of the next page with `rel="next"`; absent on the last page.');
  return success(schema, description, { Link, ...(isCounted && total) });
}

const total = {
  'Preference-Applied': text(
    `RFC 7240: \`count=exact\`, or \`count=estimated\` beyond ${maxExactTotal} items; absent unless \`Prefer\` asks for it.`,
  ),
  'X-Total-Count': text('The number of items on all pages; absent unless `Prefer: count=exact` asks for it.'),
};

/** @throws StoreError NOT_FOUND when there is no item */
export function found<Item>(item: Item | null, noun: string, id: string): Item {
  if (item === null) throw new StoreError('NOT_FOUND', `There is no ${noun} with the id ${id}.`);
  return item;
}

/** A documented failure. */
export function failure(
  code: ErrorCode,
  description: string,
  message: string,
  headers?: Record<string, object>,
): Response {
  const example = { code, message, status: httpStatusOf[code] };
  return {
    description,
    ...(headers && { headers }),
    content: { 'application/json': { schema: ErrorSchema, example } },
  };
}

/** The schema of a header. */
export function text(description: string) {
  return { type: 'string', description };
}

/**
 * Sends a page: a bare array, and `Link: <...>; rel="next"` (RFC 8288) when there are more items. The entity tag covers the
 * link, because a client that caches only tag and body would otherwise never see it.
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
