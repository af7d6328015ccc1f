import fastifyCors from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

export interface CorsOptions {
  /** Origins whose scripts may send requests; none when empty. */
  origins: string[];
}

const exposedHeaders = [
  'Link',
  'ETag',
  'Deprecation',
  'Sunset',
  'X-Request-Id',
  'WWW-Authenticate',
  'Allow',
  'Retry-After',
  'Idempotent-Replayed',
  'RateLimit',
  'RateLimit-Policy',
];

/** Lets browser frontends on the given origins send requests. Preflights carry no key: register it before `bearer`. */
export const cors = fastifyPlugin<CorsOptions>(
  async (app: FastifyInstance, { origins }) => {
    if (origins.length === 0) return;
    await app.register(fastifyCors, () => async ({ method, headers }: FastifyRequest) => {
      const isPreflight = headers['access-control-request-method'] !== undefined;
      // An OPTIONS request that is not a preflight is an ordinary request, handled by `notFound`.
      const concerned = headers.origin !== undefined && (method !== 'OPTIONS' || isPreflight);
      const methods = [...app.allowedMethods.all].filter((method) => method !== 'OPTIONS').sort();
      return { origin: concerned ? origins : false, exposedHeaders, methods, maxAge: 600 };
    });
  },
  { name: 'cors', dependencies: ['lifecycle'] },
);
