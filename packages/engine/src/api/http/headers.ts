import fastifyCors from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';

// What browsers may do with the answers.

/**
 * For JSON: browsers must not run, frame or sniff it, and not store it unless
 * `caching` allows it.
 */
export const dataHeaders = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

declare module 'fastify' {
  interface FastifyInstance {
    /** What scripts of other origins may read. */
    exposedHeaders: string[];
  }
}

/**
 * Enables CORS for scripts of these origins, if any. Call it before `bearer`,
 * because preflights carry no key.
 */
export async function cors(app: FastifyInstance, origins: string[]) {
  const exposedHeaders = [
    'Link',
    'X-Total-Count',
    'Preference-Applied',
    'ETag',
    'Deprecation',
    'Sunset',
    'X-Request-Id',
    'WWW-Authenticate',
    'Allow',
    'Retry-After',
    'Idempotent-Replayed',
  ];
  app.decorate('exposedHeaders', exposedHeaders);
  if (origins.length === 0) return;
  const optionsOf = async ({ method, headers }: FastifyRequest) => {
    const isPreflight = headers['access-control-request-method'] !== undefined;
    // `answerNotFound` answers an OPTIONS request that is not a preflight.
    const isConcerned =
      headers.origin !== undefined && (method !== 'OPTIONS' || isPreflight);
    const methods = [...app.allowedMethods.all]
      .filter((method) => method !== 'OPTIONS')
      .sort();
    return {
      origin: isConcerned ? origins : false,
      exposedHeaders,
      methods,
      maxAge: 600,
    };
  };
  await app.register(fastifyCors, () => optionsOf);
}
