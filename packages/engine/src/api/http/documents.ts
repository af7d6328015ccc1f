import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { compressedOnce, tagOf } from './negotiation.ts';
import { origin } from './server.ts';

// Content that is the same for every client, without a key.

/**
 * The options of routes that need no key and are not part of the REST contract.
 */
export const publicRoute = {
  schema: { hide: true },
  config: { public: true },
  compress: compressedOnce,
};

/**
 * Sends content that is the same for every client. It is read at the first
 * request, and compressed once per coding.
 *
 * @param read with a parameter for content that names the address of the
 *   service (`origin`), which is kept for the last eight addresses
 */
export function keep(
  read: (address: string) => string | Buffer,
  headers: Record<string, string>,
) {
  const dependsOnAddress = read.length > 0;
  const kept = new LRUCache<string, { content: Buffer; tag: string }>({
    max: 8,
    memoMethod: (address) => {
      const content = Buffer.from(read(address));
      return { content, tag: tagOf(content, headers['content-type']) };
    },
  });
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const address = dependsOnAddress ? origin(request) : '';
    const { content, tag } = kept.memo(address);
    // Other content is in memory once, however many responses hold it.
    if (dependsOnAddress)
      request.server.unread.hold(request, reply, content.length);
    reply.contentTag = tag;
    return reply.headers(headers).send(content);
  };
}

/** Serves content (`keep`) without a key. */
export function serveDocument(
  app: FastifyInstance,
  path: string,
  ...content: Parameters<typeof keep>
) {
  app.get(path, publicRoute, keep(...content));
}
