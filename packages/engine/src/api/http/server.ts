import type {
  FastifyInstance,
  FastifyRequest,
  FastifyServerOptions,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { commaSeparated } from '../../config/variables.ts';
import { answerMalformed } from './malformed.ts';
import { isHost, maxHeaderSize, routingOptions } from './routes.ts';

/**
 * Fastify's options for the HTTP server: its limits, and the handling of
 * malformed requests.
 */
export function serverOptions(options: Config['http']) {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    ...routingOptions,
    bodyLimit,
    // On a slow machine a plugin takes more than the default of 10 s. A failed
    // start is the supervisor's to notice.
    pluginTimeout: 0,
    requestTimeout,
    keepAliveTimeout,
    // Bodies and idle connections have limits of their own, which may be
    // longer; slow readers have another (`lifecycle`).
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    trustProxy: trustOf(trustProxy),
    http: {
      joinDuplicateHeaders: true,
      maxHeaderSize,
      requireHostHeader: false,
      // Limits clients that send their headers slowly.
      headersTimeout: Math.min(requestTimeout, 10_000),
      connectionsCheckingInterval: 1000,
    },
    // Requests that arrive on open connections while the service drains are
    // still served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerMalformed,
  } as FastifyServerOptions;
}

/**
 * A number becomes a function, because Fastify trusts no proxy when it gets
 * their number: it could not validate the peer
 * (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
 */
function trustOf(trustProxy: Config['http']['trustProxy']) {
  if (typeof trustProxy !== 'number') return trustProxy;
  return (_address: string, hop: number) => hop < trustProxy;
}

/**
 * Keeps only what the first trusted proxy wrote: it saw the client. Fastify
 * would take the last proxy's values, and keep the ports of addresses.
 */
export function proxies(app: FastifyInstance, { trustProxy }: Config['http']) {
  if (trustProxy === false) return;
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers, socket } = request;
    const chain = chainOf(headers['x-forwarded-for']);
    const addresses = chain.map((text) => text.replace(hostAndPort, '$1$2'));
    headers['x-forwarded-for'] = addresses.join() || socket.remoteAddress;
    let hops = (request.ips ?? []).length - 1;
    if (typeof trustProxy === 'number') hops = trustProxy;
    const written = (name: string) => {
      const all = chainOf(headers[`x-forwarded-${name}`]);
      return all.slice(Math.max(0, all.length - hops));
    };
    let [host = headers.host ?? ''] = written('host');
    const [port = ''] = written('port');
    const hasPort = /:\d*$/.test(host);
    if (unusualPort.test(port) && !hasPort) host += `:${port}`;
    headers['x-forwarded-host'] = host;
    [headers['x-forwarded-proto']] = written('proto');
    // Each proxy has stripped its own prefix.
    const prefix = written('prefix').join('');
    headers['x-forwarded-prefix'] = prefix.replace(/\/+(?=\/|$)/g, '');
    done();
  });
}

/** A port that the scheme does not imply. */
const unusualPort = /^(?!(?:80|443)$)\d+$/;

/** An address, perhaps with a port, brackets and quotes. */
const hostAndPort = /^"?(?:\[(.+)\]|([\d.]+))(?::\d*)?"?$/;

/** In characters: some 20 proxies. */
const longestChain = 1000;

/**
 * The end of what a chain of proxies has written: each adds a comma and its own.
 * A quote that the client has left open ends there.
 */
function chainOf(field: string | string[] = '') {
  return commaSeparated(`${field}`.slice(-longestChain));
}

/**
 * The scheme, host and path prefix that the client used, where a proxy may have
 * stripped the prefix. `X-Forwarded-*` counts only when it is valid and
 * `TRUST_PROXY` trusts the proxy, because proxies pass on clients' values. RFC
 * 7239's `Forwarded` is not read: most proxies do not overwrite it.
 */
export function origin(request: FastifyRequest) {
  const { protocol, host, ips = [], headers } = request;
  const scheme = /^https?$/i.test(protocol) ? protocol : 'http';
  const named = [host, headers.host ?? ''].find((one) => linkable.memo(one));
  const address = `${scheme}://${named ?? 'localhost'}`;
  // `ips` has more than the socket's address only when Fastify trusts that
  // address.
  const isTrusted = ips.length > 1;
  const prefix = `${headers['x-forwarded-prefix'] ?? ''}`;
  const isPath = /^(?:\/[\w.~-]+)+$/.test(prefix);
  if (isTrusted && isPath) return address + prefix;
  return address;
}

/** Whether a `Host` can be that of a link: its port may be too high for one. */
const linkable = new LRUCache<string, boolean>({
  max: 100,
  memoMethod: (host) => isHost(host) && URL.canParse(`http://${host}`),
});
