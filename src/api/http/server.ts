import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import { answerMalformed } from './connections.ts';
import { buildValidator } from './input.ts';

export interface ServerOptions {
  trustProxy: false | number | string[];
  /** In milliseconds: until a request has arrived completely; how long an idle connection stays open. */
  requestTimeout: number;
  keepAliveTimeout: number;
  /** In bytes. */
  bodyLimit: number;
}

const maxHeaderSize = 16_384;
/** A path without a route. */
const nowhere = '//';
/** Requests whose path cannot be decoded. */
const unreadable = new WeakSet<IncomingMessage>();

/** Fastify's options for the HTTP server: its limits, and the handling of malformed requests. */
export function serverOptions(options: ServerOptions): FastifyServerOptions {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    bodyLimit,
    requestTimeout,
    keepAliveTimeout,
    // A client that reads its response slowly holds a connection as well.
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    // The router does not compare the first character of a path: it would take `*` (RFC 9112 section 3.2.4) for `/`.
    rewriteUrl: (raw: IncomingMessage) =>
      raw.url === undefined || raw.url.startsWith('*') || unreadable.has(raw) ? nowhere : raw.url,
    // As a function, because Fastify trusts no proxy when it gets their number: it cannot validate the peer then
    // (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
    trustProxy: typeof trustProxy === 'number' ? (_address: string, hop: number) => hop < trustProxy : trustProxy,
    schemaController: { compilersFactory: { buildValidator: buildValidator as never } },
    // The longest path parameter is an int64; longer ones, up to the size of a header section, get 404.
    routerOptions: { maxParamLength: maxHeaderSize },
    http: {
      joinDuplicateHeaders: true,
      maxHeaderSize,
      requireHostHeader: false,
      // How long a client that sends its headers slowly may hold a connection.
      headersTimeout: Math.min(requestTimeout, 10_000),
      connectionsCheckingInterval: 1000,
    },
    // Requests that arrive on open connections while the service drains are still served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerMalformed,
    // A path that cannot be decoded would pass no hook: it goes the way of an unknown one.
    frameworkErrors: (_error: unknown, { raw, server }: FastifyRequest, reply: FastifyReply) => {
      unreadable.add(raw);
      server.routing(raw, reply.raw);
    },
  } as FastifyServerOptions;
}

const host = /^(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** A name or address, with an optional port. Some that look like an address are none: 999.1.1.1, [::::]. */
export function isHost(text: string): boolean {
  return host.test(text) && (!/^[\d[]|\.\d/.test(text) || URL.canParse(`http://${text}`));
}

/**
 * Scheme, host and, behind a proxy that strips one, the prefix of the path, as the client used them. `X-Forwarded-*`
 * counts only when `TRUST_PROXY` trusts the proxy, and when it is valid: proxies pass on what a client has written. RFC
 * 7239's `Forwarded` would be the client's own value behind most of them.
 */
export function origin(request: FastifyRequest): string {
  const { protocol, host, ips, headers } = request;
  const scheme = /^https?$/i.test(protocol) ? protocol : 'http';
  const named = [host, headers.host ?? ''].find((name) => isHost(name) && URL.canParse(`http://${name}`));
  // Fastify returns more than the socket's own address only when it trusts that address.
  const prefix = ips && ips.length > 1 ? headers['x-forwarded-prefix'] : undefined;
  const isPath = typeof prefix === 'string' && /^(?:\/[\w.~-]+)+$/.test(prefix);
  return `${scheme}://${named ?? 'localhost'}${isPath ? prefix : ''}`;
}
