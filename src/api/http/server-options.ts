import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import { answerMalformed } from './connections.ts';
import { buildValidator } from './input.ts';

export interface ServerOptions {
  trustProxy: false | number | string[];
  /** Milliseconds to receive a complete request, and to keep an idle connection open. */
  requestTimeout: number;
  keepAliveTimeout: number;
  /** Bytes. */
  bodyLimit: number;
}

const maxHeaderSize = 16_384;
/** A path without a route. */
const unroutedPath = '//';
/** Requests with an undecodable path. */
const unreadable = new WeakSet<IncomingMessage>();

/** Fastify's options for the HTTP server: its limits, and the handling of malformed requests. */
export function serverOptions(options: ServerOptions): FastifyServerOptions {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    bodyLimit,
    requestTimeout,
    keepAliveTimeout,
    // Also limits clients that read their response slowly.
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    // The router ignores the first character of a path, so it would treat `*` (RFC 9112 section 3.2.4) as `/`.
    rewriteUrl: (raw: IncomingMessage) =>
      raw.url === undefined || raw.url.startsWith('*') || unreadable.has(raw) ? unroutedPath : raw.url,
    // A function, because Fastify trusts no proxy when it gets their number: it could not validate the peer
    // (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
    trustProxy: typeof trustProxy === 'number' ? (_address: string, hop: number) => hop < trustProxy : trustProxy,
    schemaController: { compilersFactory: { buildValidator: buildValidator as never } },
    // The longest path parameter is an int64; longer ones, up to the size of a header section, get 404.
    routerOptions: { maxParamLength: maxHeaderSize },
    http: {
      joinDuplicateHeaders: true,
      maxHeaderSize,
      requireHostHeader: false,
      // Limits clients that send their headers slowly.
      headersTimeout: Math.min(requestTimeout, 10_000),
      connectionsCheckingInterval: 1000,
    },
    // Requests that arrive on open connections while the service drains are still served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerMalformed,
    // An undecodable path would pass no hook, so it is routed like an unknown one.
    frameworkErrors: (_error: unknown, { raw, server }: FastifyRequest, reply: FastifyReply) => {
      unreadable.add(raw);
      server.routing(raw, reply.raw);
    },
  } as FastifyServerOptions;
}

const host = /^(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** True for a name or address with an optional port. Rejects invalid addresses: 999.1.1.1, [::::]. */
export function isHost(text: string): boolean {
  return host.test(text) && (!/^[\d[]|\.\d/.test(text) || URL.canParse(`http://${text}`));
}

/**
 * The scheme, host and path prefix that the client used, where a proxy may have stripped the prefix. `X-Forwarded-*` counts
 * only when it is valid and `TRUST_PROXY` trusts the proxy, because proxies pass on clients' values. RFC 7239's `Forwarded`
 * is not read: most proxies do not overwrite it.
 */
export function origin(request: FastifyRequest): string {
  const { protocol, host, ips, headers } = request;
  const scheme = /^https?$/i.test(protocol) ? protocol : 'http';
  const named = [host, headers.host ?? ''].find((name) => isHost(name) && URL.canParse(`http://${name}`));
  // `ips` has more than the socket's address only when Fastify trusts that address.
  const prefix = ips && ips.length > 1 ? headers['x-forwarded-prefix'] : undefined;
  const isPath = typeof prefix === 'string' && /^(?:\/[\w.~-]+)+$/.test(prefix);
  return `${scheme}://${named ?? 'localhost'}${isPath ? prefix : ''}`;
}
