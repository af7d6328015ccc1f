import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { StoreError } from '../../errors.ts';
import { type CheckReadiness, health } from './health.ts';

export interface OperationsPortOptions {
  port: number;
  host: string;
  /** For `/readyz`. */
  check: CheckReadiness;
  /** Further pages. */
  plugins: FastifyPluginAsync[];
  /** Headers of every response. */
  headers: Record<string, string>;
  /** Sends failures as Error bodies, like those of the service. */
  sendError: Parameters<FastifyInstance['setErrorHandler']>[0];
}

/** Small, so that the service's own connections always find room. */
const maxConnections = 32;

/**
 * Opens the operations port. It needs no key, so it listens on a separate address that clients of the service should not
 * reach.
 */
export async function openOperationsPort(options: OperationsPortOptions): Promise<FastifyInstance> {
  const { port, host, check, plugins, headers, sendError } = options;
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
      new StoreError('BAD_USER_INPUT', `The ${part}${fault?.instancePath ?? ''} ${fault?.message ?? 'is not valid'}.`),
  });
  app.server.maxConnections = maxConnections;
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new StoreError('NOT_FOUND', 'There is nothing at this address.');
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(headers);
    // HTTP/1.0 has no Host. A browser always sends one.
    if (!request.headers.host || request.hostname === host || isLocalName(request.hostname)) return;
    throw new StoreError('FORBIDDEN', 'Ask for this by address (127.0.0.1), by a local name, or by OPERATIONS_HOST.');
  });
  await app.register(health, { check });
  for (const plugin of plugins) await app.register(plugin);
  await app.listen({ port, host }).catch((error) => {
    throw Object.assign(error, { variables: 'OPERATIONS_' });
  });
  return app;
}

/**
 * Prevents DNS rebinding, where a web page's domain name resolves to this address. Accepts only addresses and names that
 * cannot be registered: names without a dot or below a reserved one (RFC 6761, RFC 6762, ICANN's `.internal`).
 */
function isLocalName(host: string): boolean {
  return /^(?:[\w-]+|\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:.]+\]|[\w.-]+\.(?:localhost|local|internal|svc))$/i.test(host);
}
