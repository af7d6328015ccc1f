import { isIP } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { StoreError, serviceUnavailable } from '../errors.ts';
import { withTimeout } from './with-timeout.ts';

/** @returns members of the response. @throws StoreError SERVICE_UNAVAILABLE when the process cannot serve */
export type CheckReadiness = () => Promise<object>;

export interface ReadinessOptions {
  app: { readonly isDraining: boolean };
  database: { assertReady(): Promise<void> };
  quota: { readonly isShared: boolean | undefined } | undefined;
  /** Undefined without workers. */
  worker: { readonly state: { hasStarted: boolean; up: number; count: number } | undefined } | undefined;
}

const timeout = 2000;

/** Checks that the database is ready, that all workers have started, and that the process is not draining. */
export function readiness({ app, database, quota, worker }: ReadinessOptions): CheckReadiness {
  // Concurrent requests share one check of the database.
  let current: Promise<void> | undefined;
  const checkOnce = () => {
    current ??= withTimeout(timeout, database.assertReady(), late).finally(() => {
      current = undefined;
    });
    return current;
  };
  return async () => {
    if (app.isDraining) throw new StoreError('SERVICE_UNAVAILABLE', 'The service is shutting down.');
    // Clients that connected now would all stay with the first worker, on keep-alive connections.
    if (worker && !worker.state?.hasStarted) throw serviceUnavailable('The workers are starting.');
    await checkOnce();
    const { up = 1, count = 1 } = worker?.state ?? {};
    // Neither is a failure: without Redis every node counts for itself, and without a worker the others serve.
    return {
      ...(up < count && { workers: `${up} of ${count}` }),
      ...(quota?.isShared === false && { quotas: 'per node: Redis cannot be used' }),
    };
  };
}

const late = () => new StoreError('SERVICE_UNAVAILABLE', `The database has not answered within ${timeout} ms.`);

/**
 * `/livez`: the process runs. `/readyz`: it can serve. Neither needs a key; both respond within two seconds. The
 * operations port serves them as well, where no queue of clients delays them.
 */
export async function health(app: FastifyInstance, { check }: { check: CheckReadiness }): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  app.addHook('onRequest', async (_request, reply) => {
    reply.contentTag = null;
  });
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => ({ status: 'ok', ...(await check()) }));
}

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
 * Opens the operations port. It needs no key, so it listens on a separate address that clients of the service should
 * not reach.
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
 * Prevents DNS rebinding, where a web page's domain name resolves to this address. Accepts only addresses and names
 * that cannot be registered: names without a dot or below a reserved one (RFC 6761, RFC 6762, ICANN's `.internal`).
 */
function isLocalName(host: string): boolean {
  const isName = /^(?:[\w-]+|[\w.-]+\.(?:localhost|local|internal|svc))$/i.test(host);
  return isName || isIP(host.replace(/^\[(.*)\]$/, '$1')) > 0;
}
