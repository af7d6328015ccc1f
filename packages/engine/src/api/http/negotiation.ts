import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import zlib from 'node:zlib';
import type { FastifyCompressOptions } from '@fastify/compress';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { dataHeaders } from './headers.ts';

// In which form a client gets a resource: the media type, the coding, or only
// that nothing has changed. The grammars of its fields (RFC 9110, section 5.6)
// need no backtracking. Access reads credentials and idempotency keys, which
// are no lists.

declare module 'fastify' {
  interface FastifyReply {
    /**
     * The content's entity tag, when the handler knows it; null for a response
     * that must not be cached.
     */
    contentTag: string | null | undefined;
  }
}

// A separator in a quoted string separates nothing. An unclosed string ends
// with the field.
const elements = /(?:"(?:\\.|[^"\\])*"?|[^",])+/g;
const parts = /(?:"(?:\\.|[^"\\])*"?|[^";])+/g;

/** Splits a list (RFC 9110, section 5.6.1). Empty elements are none. */
export function listOf(field: string | string[] = '') {
  if (field === '') return [];
  return trimmed(`${field}`.match(elements)).filter(Boolean);
}

/**
 * Splits a value from its parameters (RFC 9110, section 5.6.6). An empty value
 * stays: otherwise a parameter would take its place.
 */
export function partsOf(element: string) {
  return trimmed(element.match(parts));
}

function trimmed(texts: string[] | null) {
  return (texts ?? []).map((text) => text.trim());
}

/** `handling=strict` of each preference, without its parameters. */
export function preferencesIn(prefer: string | string[] = '') {
  return listOf(`${prefer}`.toLowerCase()).map((one) => {
    const [preference = ''] = partsOf(one);
    const [name = '', ...values] = preference.split('=');
    if (values.length === 0) return preference;
    const value = values.join('=').trim();
    return `${name.trim()}=${value.replace(/^"([^"]*)"$/, '$1')}`;
  });
}

/** The first preference of a name counts, the others do not (RFC 7240). */
export function prefers(
  prefer: string | string[] | undefined,
  name: string,
  value: string,
) {
  if (prefer === undefined) return false;
  const field = `${prefer}`.toLowerCase();
  // A long list without the name is not parsed.
  if (!field.includes(name)) return false;
  const first = preferencesIn(field).find((one) => one.split('=')[0] === name);
  return first === `${name}=${value}`;
}

/**
 * Rolls back what a request does, for a client with `Prefer: tx=rollback`. The
 * answer says so when it was done.
 */
export function offerTrial(
  { call, headers }: FastifyRequest,
  reply: FastifyReply,
) {
  if (!prefers(headers.prefer, 'tx', 'rollback')) return;
  call.onRolledBack ??= () => addTo(reply, 'preference-applied', 'tx=rollback');
}

/** Adds an element to a list in a header, once. */
export function addTo(reply: FastifyReply, header: string, element: string) {
  const elements = listOf(reply.getHeader(header) as string | undefined);
  if (elements.includes(element)) return;
  reply.header(header, [...elements, element].join(', '));
}

/** Adds a request header to `Vary` (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string) {
  addTo(reply, 'vary', name);
}

/**
 * Characters of `Accept` and `Accept-Encoding`. Parsing thousands of types
 * takes tens of milliseconds, before authentication. A longer header is
 * ignored.
 */
const longest = 512;

/**
 * The `Accept` of a client. Without one, all types are acceptable.
 */
export function acceptOf({
  headers: { accept },
}: Pick<FastifyRequest, 'headers'>) {
  if (accept && accept.length > longest) return undefined;
  return accept;
}

/**
 * The media types that a client accepts (RFC 9110 section 12.5.1), best first.
 */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
) {
  const ranges = listOf(acceptOf(request)).map(withoutParameters);
  // An empty list accepts all.
  const accept = ranges.join() || undefined;
  const negotiator = new Negotiator({ headers: { accept } });
  return negotiator.mediaTypes([...offered]) as Type[];
}

const weight = /^q="?[\d.]+"?$/i;

/**
 * A range with its weight, if that can be read. Its parameters may be ignored
 * (RFC 9110, section 12.5.1).
 */
function withoutParameters(range: string) {
  const [type = '', ...parameters] = partsOf(range);
  const readable = parameters.find((one) => weight.test(one)) ?? 'q=1';
  return `${type.replace(/^\*$/, '*/*')};${readable}`;
}

/**
 * The codings that a client accepts, without a `*` beside others:
 * @fastify/compress takes it for gzip, even where gzip has a weight of 0.
 */
function codingsIn(field: string) {
  if (field.length > longest) return '';
  if (!field.includes('*')) return field;
  const named = listOf(field).filter((one) => !one.startsWith('*'));
  return named.join() || field;
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string) {
  return method === 'GET' || method === 'HEAD';
}

const notStored = dataHeaders['cache-control'];

/**
 * Adds entity tags and 304 (RFC 9110 section 13) to reads, and compression to
 * every content of a kilobyte, for clients that accept it. The tags are weak,
 * because all content codings share them. Streams have no tag. Register it
 * before the routes.
 */
export async function caching(app: FastifyInstance, compression: boolean) {
  app.decorateReply('contentTag', undefined);
  app.addHook('onSend', (request, reply, payload, done) => {
    const { headers, call } = request;
    const codings = headers['accept-encoding'];
    if (codings) headers['accept-encoding'] = codingsIn(codings);
    const isContent = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (!isContent || !mayKeep(request, reply)) return done(null, payload);
    // A route may have set its own.
    const isPreset = reply.getHeader('cache-control') !== notStored;
    const revalidated = call.caller ? 'private, no-cache' : 'no-cache';
    if (!isPreset) reply.header('cache-control', revalidated);
    // Lower case, as the compression plugin writes it.
    if (compression) varyBy(reply, 'accept-encoding');
    // The media type is part of the tag, because `/graphql` has two.
    const type = `${reply.getHeader('content-type')}`;
    const tag = reply.contentTag ?? tagOf(payload, type);
    reply.header('etag', `W/"${tag}"`);
    const known = headers['if-none-match'] ?? '';
    // Tags contain no comma or space, so a substring match is a list match.
    const isCurrent = known.includes(`"${tag}"`) || known.trim() === '*';
    done(null, isCurrent ? unchanged(request, reply) : payload);
  });
  if (!compression) return;
  await app.register(import('@fastify/compress'), {
    encodings,
    globalDecompression: false,
    // Bytes. Compressing more would block the event loop for a millisecond,
    // so it runs in another thread.
    syncThreshold: 65_536,
  });
}

const encodings: FastifyCompressOptions['encodings'] = [
  'zstd',
  'br',
  'gzip',
  'identity',
];

/**
 * The `compress` option of routes that always send the same Buffer: it is
 * compressed once per coding, and kept.
 */
export const compressedOnce: FastifyCompressOptions = {
  encodings,
  syncThreshold: Number.POSITIVE_INFINITY,
  zlib: {
    gzipSync: once(zlib.gzipSync),
    brotliCompressSync: once(zlib.brotliCompressSync),
    zstdCompressSync: once(zlib.zstdCompressSync),
  },
};

function once(compress: (content: Buffer, options: object) => Buffer) {
  const kept = new WeakMap<Buffer, Buffer>();
  return (content: Buffer, options: object) => {
    const compressed = kept.get(content) ?? compress(content, options);
    kept.set(content, compressed);
    return compressed;
  };
}

/** A 160-bit tag of a text. Only the length of the media type is part of it. */
export function tagOf(content: string | Buffer, mediaType = '') {
  return hash('sha1', content, 'base64url') + mediaType.length.toString(36);
}

/**
 * True for successful reads. All other responses have `no-store`
 * (`dataHeaders`).
 */
function mayKeep(
  { method, call }: FastifyRequest,
  { statusCode, contentTag }: FastifyReply,
) {
  return (
    isRead(method) &&
    statusCode === 200 &&
    call.code === undefined &&
    contentTag !== null
  );
}

/**
 * Keeps all headers of the 200 except content headers (RFC 9110 section
 * 15.4.5), so that caches get a new `Link`.
 */
function unchanged({ method, headers }: FastifyRequest, reply: FastifyReply) {
  reply.code(304).removeHeader('content-type');
  // The stream is no content: it must not be compressed.
  headers['accept-encoding'] = 'identity';
  // For HEAD Fastify sets Content-Length from the payload, unless it is a
  // stream.
  return method === 'HEAD' ? Readable.from([]) : null;
}
