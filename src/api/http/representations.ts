import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Compressor, codingNames } from './compressor.ts';
import { contentTag, entityTag, matchingTag } from './entity-tag.ts';
import { dataHeaders, varyBy } from './headers.ts';
import { isRead } from './operation.ts';

declare module 'fastify' {
  interface FastifyReply {
    /**
     * Names the content. Set by a handler that knows more about it than its text, or knew it before; null for an answer
     * of this moment, of which nobody asks whether it is still the same.
     */
    contentTag: string | null | undefined;
  }
}

export interface RepresentationsOptions {
  /** Whether answers are compressed for clients that ask for it. */
  compression: boolean;
}

/**
 * The form of an answer on the wire: an entity tag on what was read, 304 for who has it already, and compression. A
 * stream, and what has a tag or a coding from its route, is sent as it is.
 */
export const representations = fastifyPlugin<RepresentationsOptions>(
  async (app: FastifyInstance, { compression }) => {
    const compressor = compression ? new Compressor() : undefined;
    app.decorateReply('contentTag', undefined);
    app.addHook('onSend', (request, reply, payload, done) => {
      if (!isContent(payload)) return done(null, payload);
      const isKept = mayKeep(request, reply);
      const coding = compressor && codingOf(compressor, request, reply, payload);
      if (!isKept && coding === undefined) return done(null, payload);
      if (reply.hasHeader('etag') || reply.hasHeader('content-encoding')) return done(null, payload);

      const tag = reply.contentTag ?? tagOf(reply, payload);
      if (compressor) varyBy(reply, 'Accept-Encoding');
      if (isKept) {
        // A route that says more itself knows better.
        const isSaid = reply.getHeader('cache-control') !== dataHeaders['cache-control'];
        if (!isSaid) reply.header('cache-control', request.caller ? 'private, no-cache' : 'no-cache');
        const matching = matchingTag(request.headers['if-none-match'], tag, coding, codingNames);
        reply.header('etag', matching ?? entityTag(tag, coding));
        if (matching !== undefined) return done(null, notModified(request, reply));
      }
      if (!compressor || coding === undefined) return done(null, payload);
      const sent = (bytes: Buffer) => {
        reply.header('content-encoding', coding);
        done(null, bytes);
      };
      const compressed = compressor.compress(payload, tag, coding);
      if (Buffer.isBuffer(compressed)) sent(compressed);
      else compressed.then(sent, done);
    });
  },
  // After the quota, which may still refuse.
  { name: 'representations', dependencies: ['every-request', 'meter'] },
);

function isContent(payload: unknown): payload is string | Buffer {
  return typeof payload === 'string' || Buffer.isBuffer(payload);
}

/** Most clients of a service ask for none, and pay for nothing. */
function codingOf(compressor: Compressor, request: FastifyRequest, reply: FastifyReply, payload: string | Buffer) {
  const accepted = request.headers['accept-encoding'];
  if (accepted === undefined || !isText(reply)) return undefined;
  return compressor.codingFor(`${accepted}`, Buffer.byteLength(payload));
}

function isText(reply: FastifyReply): boolean {
  return /^text\/(?!event-stream)|json|javascript|xml|graphql/.test(`${reply.getHeader('content-type')}`);
}

/** What was read without a fault. Everything else says `no-store` (`dataHeaders`). */
function mayKeep({ method, call }: FastifyRequest, { statusCode, contentTag }: FastifyReply): boolean {
  return isRead(method) && statusCode === 200 && call.code === undefined && contentTag !== null;
}

/** The media type is part of it: `/graphql` answers in two. */
function tagOf(reply: FastifyReply, payload: string | Buffer): string {
  return contentTag(typeof payload === 'string' ? `${reply.getHeader('content-type')}\n${payload}` : payload);
}

/**
 * All headers of the 200 but those of its content (RFC 9110 section 15.4.5): whoever keeps pages learns of a new
 * `Link`.
 */
function notModified({ method }: FastifyRequest, reply: FastifyReply): Readable | null {
  reply.code(304).removeHeader('content-type');
  // For HEAD Fastify measures what it gets, and says so in Content-Length, unless it is a stream.
  return method === 'HEAD' ? Readable.from([]) : null;
}
