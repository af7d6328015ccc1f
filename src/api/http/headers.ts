import fastifyCors from '@fastify/cors';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import Negotiator from 'negotiator';

/** Security headers of every response. */
export const securityHeaders = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** For JSON: browsers must not run, frame or sniff it, and not store it unless `caching` allows it. */
export const dataHeaders = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cache-control': 'no-store',
  ...securityHeaders,
};

/** Adds a request header to `Vary` (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary');
  reply.header('vary', others ? `${others}, ${name}` : name);
}

/** Characters. Parsing thousands of types takes tens of milliseconds, before authentication. */
const longestAccept = 512;

/**
 * The media types that a client accepts (RFC 9110 section 12.5.1), best first. An excessively long header is ignored, so
 * all types are acceptable.
 */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
): Type[] {
  const { accept = '' } = request.headers;
  return accept.length > longestAccept ? [...offered] : (new Negotiator(request).mediaTypes([...offered]) as Type[]);
}

/** Whether a client prefers HTML to JSON, as browsers do. */
export function prefersHtml(request: FastifyRequest): boolean {
  return acceptedTypes(request, ['application/json', 'text/html'])[0] === 'text/html';
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

const exposedHeaders =
  'Link, X-Total-Count, Preference-Applied, ETag, Deprecation, Sunset, X-Request-Id, WWW-Authenticate, Allow, Retry-After, Idempotent-Replayed, RateLimit, RateLimit-Policy';

export interface CorsOptions {
  /** Origins whose scripts may send requests; none when empty. */
  origins: string[];
}

/** Enables CORS for the given origins. Register it before `bearer`, because preflights carry no key. */
export const cors = fastifyPlugin<CorsOptions>(
  async (app: FastifyInstance, { origins }) => {
    if (origins.length === 0) return;
    await app.register(fastifyCors, () => async ({ method, headers }: FastifyRequest) => {
      const isPreflight = headers['access-control-request-method'] !== undefined;
      // `addresses` answers an OPTIONS request that is not a preflight.
      const concerned = headers.origin !== undefined && (method !== 'OPTIONS' || isPreflight);
      const methods = [...app.allowedMethods.all].filter((method) => method !== 'OPTIONS').sort();
      return { origin: concerned ? origins : false, exposedHeaders, methods, maxAge: 600 };
    });
  },
  { name: 'cors', dependencies: ['lifecycle'] },
);
