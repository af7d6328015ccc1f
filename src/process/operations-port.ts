import { isIP } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { sendError } from '../api/http/failures.ts';
import { dataHeaders } from '../api/http/headers.ts';
import type { Config } from '../config/config.ts';
import { StoreError } from '../errors.ts';
import type { Parts } from '../feature.ts';
import { type CheckReadiness, health } from '../runtime/health.ts';
import type { Log } from '../runtime/log/log.ts';

/** Small, so that the service's own connections always find room. */
const maxConnections = 32;

/**
 * Opens the operations port, if configured. It needs no key, so it listens on a
 * separate address that clients of the service should not reach. Open it before
 * the service's port, so that a port in use fails the start.
 */
export async function openOperationsPort(
  { operations: { port, host } }: Config,
  log: Log,
  parts: readonly Parts[],
  check: CheckReadiness,
): Promise<FastifyInstance | undefined> {
  if (port === 0) return undefined;
  const app = Fastify({
    logger: false,
    bodyLimit: 16_384,
    requestTimeout: 2000,
    // Frees idle connections for the next scrape.
    keepAliveTimeout: 5000,
    http: { connectionsCheckingInterval: 1000 },
    // A request that never completes must not delay the shutdown.
    forceCloseConnections: true,
    // Settings must have the right type.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    schemaErrorFormatter: ([fault], part) =>
      new StoreError(
        'BAD_USER_INPUT',
        `The ${part}${fault?.instancePath ?? ''} ${fault?.message ?? 'is not valid'}.`,
      ),
  });
  app.server.maxConnections = maxConnections;
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new StoreError('NOT_FOUND', 'There is nothing at this address.');
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(dataHeaders);
    const { headers, hostname } = request;
    // HTTP/1.0 has no Host. A browser always sends one.
    if (!headers.host || hostname === host || isLocalName(hostname)) return;
    throw new StoreError(
      'FORBIDDEN',
      'Ask for this by address (127.0.0.1), by a local name, or by OPERATIONS_HOST.',
    );
  });
  await app.register(health, { check });
  await app.register(log.page);
  for (const part of parts) part.operations?.(app);
  await app.listen({ port, host }).catch((error) => {
    throw Object.assign(error, { variables: 'OPERATIONS_' });
  });
  return app;
}

const localName = /^(?:[\w-]+|[\w.-]+\.(?:localhost|local|internal|svc))$/i;

/**
 * Prevents DNS rebinding, where a web page's domain name resolves to this
 * address. Accepts only addresses and names that cannot be registered: names
 * without a dot or below a reserved one (RFC 6761, RFC 6762, ICANN's
 * `.internal`).
 */
function isLocalName(host: string) {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) > 0 || localName.test(host);
}
