import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import compress from '@fastify/compress';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { dataHeaders, isRead, varyBy } from './headers.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** Names the content for its entity tag, if the handler knows a name; null for an answer of this moment only. */
    contentTag: string | null | undefined;
  }
}

export interface CachingOptions {
  /** Whether answers are compressed for clients that ask for it. */
  compression: boolean;
}

/**
 * Entity tags and 304 for what was read (RFC 9110 section 13), and compression. The tags are weak: all codings of a text
 * have the same. Streams are sent without a tag. Register it before the routes.
 */
export const caching = fastifyPlugin<CachingOptions>(
  async (app: FastifyInstance, { compression }) => {
    app.decorateReply('contentTag', undefined);
    app.addHook('onSend', (request, reply, payload, done) => {
      const isContent = typeof payload === 'string' || Buffer.isBuffer(payload);
      if (!isContent || !mayKeep(request, reply)) return done(null, payload);
      // A route that says more itself knows better.
      const isSaid = reply.getHeader('cache-control') !== dataHeaders['cache-control'];
      if (!isSaid) reply.header('cache-control', request.caller ? 'private, no-cache' : 'no-cache');
      // In lower case, as the plugin would add it to the answers that it compresses.
      if (compression) varyBy(reply, 'accept-encoding');
      // The media type counts: `/graphql` answers in two.
      const tag = `"${reply.contentTag ?? contentTag(payload, `${reply.getHeader('content-type')}`)}"`;
      reply.header('etag', `W/${tag}`);
      const has = request.headers['if-none-match'];
      // Tags contain no comma or space, so a substring match is a list match.
      const isCurrent = has !== undefined && (has.includes(tag) || has.trim() === '*');
      done(null, isCurrent ? notModified(request, reply) : payload);
    });
    if (!compression) return;
    await app.register(compress, {
      encodings: ['zstd', 'br', 'gzip', 'identity'],
      globalDecompression: false,
      // In bytes. Beyond, compression would hold up other requests for a millisecond, and runs in another thread.
      syncThreshold: 65_536,
    });
  },
  // After the quota, which may still refuse.
  { name: 'caching', dependencies: ['lifecycle', 'meter'] },
);

/** A name for a text, of 160 bits. The media type counts by its length. */
export function contentTag(content: string | Buffer, mediaType = ''): string {
  return hash('sha1', content, 'base64url') + mediaType.length.toString(36);
}

/** What was read without a fault. Everything else says `no-store` (`dataHeaders`). */
function mayKeep({ method, call }: FastifyRequest, { statusCode, contentTag }: FastifyReply): boolean {
  return isRead(method) && statusCode === 200 && call.code === undefined && contentTag !== null;
}

/** All headers of the 200 but those of its content (RFC 9110 section 15.4.5): clients that keep pages see a new `Link`. */
function notModified({ method }: FastifyRequest, reply: FastifyReply): Readable | null {
  reply.code(304).removeHeader('content-type');
  // For HEAD Fastify sets Content-Length from the payload, unless it is a stream.
  return method === 'HEAD' ? Readable.from([]) : null;
}
