import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import zlib, { type InputType } from 'node:zlib';
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

/** Splits a list (RFC 9110, section 5.6.1). Empty elements are none. */
export function listOf(field: string | string[] = ''): string[] {
  const texts = `${field}`.match(elements) ?? [];
  return texts.map((text) => text.trim()).filter(Boolean);
}

const preference = /^([^\s=;]+)(?:\s*=\s*("?)([^\s;"]+)\2\s*(?:;|$))?/;

/** The first preference of a name counts, the others do not (RFC 7240). */
export function prefers(
  prefer: string | string[] | undefined,
  name: string,
  value: string,
): boolean {
  // A long list without the name is not parsed.
  if (!`${prefer}`.toLowerCase().includes(name)) return false;
  const given = listOf(prefer).map((one) => preference.exec(one) ?? []);
  const first = given.find(([, found]) => found?.toLowerCase() === name);
  return first?.[3]?.toLowerCase() === value;
}

/** Adds a request header to `Vary` (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary') as string | undefined;
  if (!others) reply.header('vary', name);
  else if (!listOf(others).includes(name))
    reply.header('vary', `${others}, ${name}`);
}

// All but a readable weight.
const parameters =
  /;(?!\s*q="?[\d.]+"?\s*(?:[;,]|$))[^;,"=]*(?:=(?:"(?:\\.|[^"\\])*"?|[^;,"])*)?/gi;

const star = /(?<![^,])\*(?!\/)/g;

/**
 * An `Accept` without the parameters of its ranges, which may be ignored
 * (section 12.5.1). undefined for an empty list, which accepts all.
 */
function rangesIn(accept = ''): string | undefined {
  const ranges = listOf(accept.replace(parameters, '')).join();
  return ranges.replace(star, '*/*') || undefined;
}

/**
 * The `*` beside other codings in `Accept-Encoding`. @fastify/compress takes it
 * for gzip, even where gzip has a weight of 0.
 */
const wildcard = /(?<=\w.*)\*[^,]*|\*[^,]*(?=,.*\w)/g;

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
}: Pick<FastifyRequest, 'headers'>): string | undefined {
  return accept && accept.length > longest ? undefined : accept;
}

/**
 * The media types that a client accepts (RFC 9110 section 12.5.1), best first.
 */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
): Type[] {
  const accept = rangesIn(acceptOf(request));
  return new Negotiator({ headers: { accept } }).mediaTypes([
    ...offered,
  ]) as Type[];
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Adds entity tags and 304 (RFC 9110 section 13) to reads, and compression to
 * every content of a kilobyte, for clients that accept it. The tags are weak,
 * because all content codings share them. Streams have no tag. Register it
 * before the routes.
 */
export async function caching(
  app: FastifyInstance,
  compression: boolean,
): Promise<void> {
  app.decorateReply('contentTag', undefined);
  app.addHook('onSend', (request, reply, payload, done) => {
    const { headers, call } = request;
    const { 'accept-encoding': codings = '', 'if-none-match': known } = headers;
    const isTooLong = codings.length > longest;
    headers['accept-encoding'] = isTooLong ? '' : codings.replace(wildcard, '');
    const isContent = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (!isContent || !mayKeep(request, reply)) return done(null, payload);
    // Keeps the header of a route that sets its own.
    if (reply.getHeader('cache-control') === dataHeaders['cache-control'])
      reply.header(
        'cache-control',
        `${call.caller ? 'private, ' : ''}no-cache`,
      );
    // Lower case, as the compression plugin writes it.
    if (compression) varyBy(reply, 'accept-encoding');
    // The media type is part of the tag, because `/graphql` has two.
    const tag =
      reply.contentTag ?? tagOf(payload, `${reply.getHeader('content-type')}`);
    reply.header('etag', `W/"${tag}"`);
    // Tags contain no comma or space, so a substring match is a list match.
    const isCurrent = known?.includes(`"${tag}"`) || known?.trim() === '*';
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

function once<Options>(
  compress: (content: InputType, options?: Options) => Buffer,
) {
  const kept = new WeakMap<Buffer, Buffer>();
  return (content: Buffer, options?: Options): Buffer => {
    const compressed = kept.get(content) ?? compress(content, options);
    kept.set(content, compressed);
    return compressed;
  };
}

/** A 160-bit tag of a text. Only the length of the media type is part of it. */
export function tagOf(content: string | Buffer, mediaType = ''): string {
  return hash('sha1', content, 'base64url') + mediaType.length.toString(36);
}

/**
 * True for successful reads. All other responses have `no-store`
 * (`dataHeaders`).
 */
function mayKeep(
  { method, call }: FastifyRequest,
  { statusCode, contentTag }: FastifyReply,
): boolean {
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
function unchanged(
  { method }: FastifyRequest,
  reply: FastifyReply,
): Readable | null {
  reply.code(304).removeHeader('content-type');
  // For HEAD Fastify sets Content-Length from the payload, unless it is a
  // stream.
  return method === 'HEAD' ? Readable.from([]) : null;
}
