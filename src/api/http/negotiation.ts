import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import zlib, { type InputType } from 'node:zlib';
import type { FastifyCompressOptions } from '@fastify/compress';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import Negotiator from 'negotiator';
import { rangesIn, wildcard } from './fields.ts';
import { dataHeaders } from './headers.ts';

// In which form a client gets a resource: the media type, the coding, or only
// that nothing has changed.

declare module 'fastify' {
  interface FastifyReply {
    /**
     * The content's entity tag, when the handler knows it; null for a response
     * that must not be cached.
     */
    contentTag: string | null | undefined;
  }
}

/** Adds a request header to `Vary` (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary');
  reply.header('vary', others ? `${others}, ${name}` : name);
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
export const caching = fastifyPlugin<{ compression: boolean }>(
  async (app: FastifyInstance, { compression }) => {
    app.decorateReply('contentTag', undefined);
    app.addHook('onSend', (request, reply, payload, done) => {
      const { headers } = request;
      const { 'accept-encoding': codings = '' } = headers;
      headers['accept-encoding'] =
        codings.length > longest ? '' : codings.replace(wildcard, '');
      const isContent = typeof payload === 'string' || Buffer.isBuffer(payload);
      if (!isContent || !mayKeep(request, reply)) return done(null, payload);
      // Keeps the header of a route that sets its own.
      const hasOwn =
        reply.getHeader('cache-control') !== dataHeaders['cache-control'];
      if (!hasOwn)
        reply.header(
          'cache-control',
          request.call.caller ? 'private, no-cache' : 'no-cache',
        );
      // Lower case, as the compression plugin writes it.
      if (compression) varyBy(reply, 'accept-encoding');
      // The media type is part of the tag, because `/graphql` has two.
      const tag = `"${reply.contentTag ?? tagOf(payload, `${reply.getHeader('content-type')}`)}"`;
      reply.header('etag', `W/${tag}`);
      const { 'if-none-match': has } = headers;
      // Tags contain no comma or space, so a substring match is a list match.
      const isCurrent =
        has !== undefined && (has.includes(tag) || has.trim() === '*');
      done(null, isCurrent ? notModified(request, reply) : payload);
    });
    if (!compression) return;
    await app.register(import('@fastify/compress'), {
      encodings,
      globalDecompression: false,
      // Bytes. Compressing more would block the event loop for a millisecond,
      // so it runs in another thread.
      syncThreshold: 65_536,
    });
  },
  { name: 'caching', dependencies: ['lifecycle'] },
);

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
function notModified(
  { method }: FastifyRequest,
  reply: FastifyReply,
): Readable | null {
  reply.code(304).removeHeader('content-type');
  // For HEAD Fastify sets Content-Length from the payload, unless it is a
  // stream.
  return method === 'HEAD' ? Readable.from([]) : null;
}
