import type { IncomingMessage } from 'node:http';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyServerOptions,
  RouteOptions,
} from 'fastify';
import createRouter from 'find-my-way';
import type { TObject } from 'typebox';
import type { Config } from '../../config/config.ts';
import { StoreError } from '../../errors.ts';
import { validator } from '../../validation/validator.ts';
import { answerMalformed } from './malformed.ts';
import { listOf } from './negotiation.ts';

declare module 'fastify' {
  interface FastifyInstance {
    allowedMethods: AllowedMethods;
    /** Marks prefixes with their own error format and not-found handler. */
    answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  }
}

const maxHeaderSize = 16_384;
/** Requests with an undecodable path. */
const unreadable = new WeakSet<IncomingMessage>();

/**
 * Fastify's options for the HTTP server: its limits, and the handling of
 * malformed requests.
 */
export function serverOptions(options: Config['http']): FastifyServerOptions {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    bodyLimit,
    // On a slow machine a plugin takes more than the default of 10 s. A failed
    // start is the supervisor's to notice.
    pluginTimeout: 0,
    requestTimeout,
    keepAliveTimeout,
    // Also limits clients that read their response slowly.
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    // `//` has no route. The router ignores the first character of a path: `*`
    // (RFC 9112 section 3.2.4) would be `/`.
    rewriteUrl: (raw: IncomingMessage) => {
      const { url = '*' } = raw;
      return url.startsWith('*') || unreadable.has(raw) ? '//' : url;
    },
    // A function, because Fastify trusts no proxy when it gets their number: it
    // could not validate the peer
    // (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
    trustProxy:
      typeof trustProxy === 'number'
        ? (_address: string, hop: number) => hop < trustProxy
        : trustProxy,
    schemaController: {
      compilersFactory: { buildValidator: buildValidator as never },
    },
    // The longest path parameter is an int64; longer ones, up to the size of a
    // header section, get 404.
    routerOptions: { maxParamLength: maxHeaderSize },
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
    // An undecodable path would pass no hook, so it is routed like an unknown
    // one.
    frameworkErrors: (
      _error: unknown,
      { raw, server }: FastifyRequest,
      reply: FastifyReply,
    ) => {
      unreadable.add(raw);
      server.routing(raw, reply.raw);
    },
  } as FastifyServerOptions;
}

/**
 * Makes Fastify validate input with `validator`, so that a schema means the
 * same as in OpenAPI.
 */
function buildValidator() {
  return ({ schema, httpPart }: { schema: TObject; httpPart?: string }) => {
    // Routes answer an invalid path parameter with 404, and headers are checked
    // where they are read.
    if (httpPart === 'params' || httpPart === 'headers') return () => true;
    const check = validator(schema, { isLenient: httpPart !== 'body' });
    return (input: unknown) => {
      try {
        return { value: check(input) };
      } catch (error) {
        return { error };
      }
    };
  };
}

/** The methods of each path, which Fastify's router cannot list. */
class AllowedMethods {
  readonly #router = createRouter();
  /** The methods of all paths. */
  readonly all = new Set<string>(['OPTIONS']);

  add({ url, method }: Pick<RouteOptions, 'url' | 'method'>): void {
    if (url === '*') return;
    const known: Set<string> = this.#router.findRoute('GET', url)?.store;
    const methods = known ?? new Set(['OPTIONS']);
    if (!known) this.#router.on('GET', url, () => undefined, methods);
    for (const one of [method].flat()) {
      methods.add(one);
      this.all.add(one);
    }
  }

  /** @returns undefined for an unknown path */
  of({ raw: { url = '/' } }: FastifyRequest): string[] | undefined {
    const known: Set<string> | undefined = this.#router.find('GET', url)?.store;
    return known && [...known].sort();
  }
}

/**
 * Rejects requests without exactly one valid host (RFC 9112, section 3.2): by
 * default Node rejects only a missing one, without a body. Sends 404 for
 * unknown paths, and 405 with `Allow` (RFC 9110 section 15.5.6) for known ones;
 * OPTIONS lists methods. The body is not read, so errors in it do not matter.
 */
export function addresses(app: FastifyInstance): void {
  const allowedMethods = new AllowedMethods();
  app.decorate('allowedMethods', allowedMethods);
  const answer = (request: FastifyRequest, reply: FastifyReply) => {
    const { method } = request;
    const methods = allowedMethods.of(request);
    const isOptions = method === 'OPTIONS';
    // The route may also call this itself, for example for a missing file of
    // the documentation.
    const isAllowed = !isOptions && methods?.includes(method);
    if (!methods || isAllowed)
      throw new StoreError('NOT_FOUND', 'There is nothing at this address.');
    const allow = methods.join(', ');
    if (isOptions) return reply.code(204).header('allow', allow).send();
    // `lifecycle` adds `Allow` to every 405.
    throw new StoreError(
      'METHOD_NOT_ALLOWED',
      `${method} is not possible here. Allowed: ${allow}.`,
    );
  };
  app.setNotFoundHandler(answer);
  app.decorate('answerNotFound', answer);
  app.addHook('onRequest', (request, reply, done) => {
    const { headers, httpVersion } = request.raw;
    const withoutHost = httpVersion === '1.1' ? ' ' : '';
    if (!isHost(headers.host ?? withoutHost))
      throw new StoreError('BAD_USER_INPUT', badHost);
    if (request.is404) answer(request, reply);
    else done();
  });
}

export const badHost =
  'The request must have one Host header: a name or address, and a port.';

/**
 * A name has at most 253 characters (RFC 1035 section 2.3.4). Parsing one of
 * thousands takes milliseconds.
 */
const host = /^(?:[\w.-]{0,253}|\[[\da-f:.]{2,45}\])(?::\d{0,5})?$/i;

/**
 * True for a name or address with an optional port. Rejects invalid addresses:
 * 999.1.1.1, [::::].
 */
export function isHost(text: string): boolean {
  const isAddress = /^[\d[]|\.\d/.test(text);
  return host.test(text) && (!isAddress || isUrl(text));
}

const isUrl = (text: string) => URL.canParse(`http://${text}`);

/**
 * Reduces what a chain of proxies has written to what its first trusted one
 * has, which knows the client. Fastify takes the last one's, and the addresses
 * with their ports.
 */
export function proxies(
  app: FastifyInstance,
  { trustProxy }: Pick<Config['http'], 'trustProxy'>,
): void {
  if (trustProxy === false) return;
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers, socket } = request;
    const chain = chainOf(headers['x-forwarded-for']);
    const addresses = chain.map((text) => text.replace(withPort, '$1$2'));
    headers['x-forwarded-for'] = addresses.join() || socket.remoteAddress;
    const { length } = request.ips ?? [];
    const hops = typeof trustProxy === 'number' ? trustProxy : length - 1;
    const written = (name: string) =>
      chainOf(headers[`x-forwarded-${name}`]).slice(-hops);
    const [host = headers.host ?? ''] = written('host');
    const [port = ''] = written('port');
    const isMissing = /^(?!80$|443$)\d+$/.test(port) && !/:\d*$/.test(host);
    headers['x-forwarded-host'] = isMissing ? `${host}:${port}` : host;
    [headers['x-forwarded-proto']] = written('proto');
    // Each has stripped its own.
    const prefix = written('prefix').join('');
    headers['x-forwarded-prefix'] = prefix.replace(/\/+(?=\/|$)/g, '');
    done();
  });
}

/** An address without its port, brackets and quotes. */
const withPort = /^"?(?:\[(.+)\]|([\d.]+))(?::\d*)?"?$/;

/** In characters: some 20 proxies. */
const longestChain = 1000;

/** The end of what a chain of proxies has written: each adds to the end. */
function chainOf(field: string | string[] = ''): string[] {
  const text = `${field}`;
  const end = text.slice(-longestChain);
  const isCut = end.length < text.length;
  return listOf(isCut ? end.slice(end.indexOf(',') + 1) : end);
}

/**
 * The scheme, host and path prefix that the client used, where a proxy may have
 * stripped the prefix. `X-Forwarded-*` counts only when it is valid and
 * `TRUST_PROXY` trusts the proxy, because proxies pass on clients' values. RFC
 * 7239's `Forwarded` is not read: most proxies do not overwrite it.
 */
export function origin(request: FastifyRequest): string {
  const { protocol, host, ips, headers } = request;
  const scheme = /^https?$/i.test(protocol) ? protocol : 'http';
  const named = [host, headers.host ?? ''].find(
    (text) => isHost(text) && isUrl(text),
  );
  // `ips` has more than the socket's address only when Fastify trusts that
  // address.
  const isTrusted = ips && ips.length > 1;
  const prefix = `${headers['x-forwarded-prefix']}`;
  const isPath = isTrusted && /^(?:\/[\w.~-]+)+$/.test(prefix);
  return `${scheme}://${named ?? 'localhost'}${isPath ? prefix : ''}`;
}
