import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { StoreError } from '../../errors.ts';
import { type CheckReadiness, health } from './health.ts';

export interface OperationsPortOptions {
  port: number;
  host: string;
  /** Of this process, for `/readyz`. */
  check: CheckReadiness;
  /** Further pages. */
  plugins: FastifyPluginAsync[];
  /** Of every answer. */
  headers: Record<string, string>;
  /** Sends failures as Error bodies, like those of the service. */
  sendError: Parameters<FastifyInstance['setErrorHandler']>[0];
}

/** So that connections to the service always find room. */
const maxConnections = 32;

/**
 * Opens the port for operators and their tools. It needs no key, so it listens on an address of its own, which no client
 * of the service should reach.
 */
export async function openOperationsPort(options: OperationsPortOptions): Promise<FastifyInstance> {
  const { port, host, check, plugins, headers, sendError } = options;
  const app = Fastify({
    logger: false,
    bodyLimit: 16_384,
    requestTimeout: 2000,
    // Idle connections leave room for a scrape.
    keepAliveTimeout: 5000,
    http: { connectionsCheckingInterval: 1000 },
    // It is the last to close, and a request that is never completed must not hold that up.
    forceCloseConnections: true,
    // A setting is taken literally.
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
    // HTTP/1.0 has no Host, which a browser always sends.
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
 * A page whose own name leads to this address (DNS rebinding) sends that name as the host. Only addresses, and names that
 * cannot be registered, are accepted: without a dot, or below a reserved one (RFC 6761, RFC 6762, ICANN's `.internal`).
 */
function isLocalName(host: string): boolean {
  return /^(?:[\w-]+|\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:.]+\]|[\w.-]+\.(?:localhost|local|internal|svc))$/i.test(host);
}
