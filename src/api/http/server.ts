import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';
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

/** Fastify's options for the HTTP server: its limits, and the handling of malformed requests. */
export function serverOptions(options: ServerOptions): FastifyServerOptions {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    bodyLimit,
    requestTimeout,
    keepAliveTimeout,
    // A client that reads its response slowly holds a connection as well.
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    rewriteUrl: asPath,
    ...(trustProxy === false ? {} : { trustProxy: trusted(trustProxy), rewriteUrl: distrustForwarded }),
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
      raw.url = nowhere;
      server.routing(raw, reply.raw);
    },
  } as FastifyServerOptions;
}

/**
 * Converts a number of hops to a function: given the number, Fastify trusts no proxy, because it cannot validate the
 * peer (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
 */
function trusted(proxies: number | string[]): FastifyServerOptions['trustProxy'] {
  return typeof proxies === 'number' ? (_address: string, hop: number) => hop < proxies : proxies;
}

/** The router does not compare the first character of a path: it would take `*` (RFC 9112 section 3.2.4) for `/`. */
function asPath({ url = '/' }: IncomingMessage): string {
  return url.startsWith('*') ? `/${url}` : url;
}

/**
 * Removes values that a proxy passed on unchecked, before Fastify builds URLs from them: only a host and a port, and
 * http or https, are valid. Only `X-Forwarded-*` counts, since that is what proxies write: behind most of them RFC
 * 7239's `Forwarded` would be the client's own value.
 *
 * @returns the request's path: the signature is that of Fastify's `rewriteUrl`, which runs first of all.
 */
function distrustForwarded(request: IncomingMessage): string {
  const { headers } = request;
  if (!isHost(lastOf(headers['x-forwarded-host']))) delete headers['x-forwarded-host'];
  if (!/^https?$/i.test(lastOf(headers['x-forwarded-proto']))) delete headers['x-forwarded-proto'];
  return asPath(request);
}

/**
 * Rejects requests without exactly one valid host (RFC 9112, section 3.2). By default Node rejects only a missing one,
 * without a body.
 */
export const oneHost = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', ({ raw: { headers, httpVersion } }, _reply, done) => {
      const { host = httpVersion === '1.1' ? ' ' : '' } = headers;
      done(isHost(host) ? undefined : badHost());
    });
  },
  { name: 'one-host', dependencies: ['bearer'] },
);

function badHost(): StoreError {
  return new StoreError('BAD_USER_INPUT', 'The request must have one Host header: a name or address, and a port.');
}

const host = /^(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** A name or address, with an optional port. Some that look like an address are none: 999.1.1.1, [::::]. */
export function isHost(text: string): boolean {
  return host.test(text) && (!/^[\d[]|\.\d/.test(text) || URL.canParse(`http://${text}`));
}

/** Fastify takes the last of several values. */
function lastOf(header: string | string[] | undefined): string {
  return `${header ?? ''}`.split(',').at(-1)?.trim() ?? '';
}

/**
 * Scheme, host and, behind a proxy that strips one, the prefix of the path, as the client used them. Forwarded headers
 * count only when `TRUST_PROXY` trusts the proxy.
 */
export function origin(request: FastifyRequest): string {
  const { protocol, host } = request;
  return `${protocol}://${isHost(host) && URL.canParse(`http://${host}`) ? host : 'localhost'}${prefix(request)}`;
}

function prefix({ ips, headers }: FastifyRequest): string {
  // Fastify returns more than the socket's own address only when it trusts that address.
  const given = ips && ips.length > 1 ? headers['x-forwarded-prefix'] : undefined;
  return typeof given === 'string' && /^(?:\/[\w.~-]+)+$/.test(given) ? given : '';
}
