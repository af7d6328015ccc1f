import { isIP } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { nothingHere, sendError } from '../api/http/failures.ts';
import { dataHeaders } from '../api/http/headers.ts';
import type { Config } from '../config/config.ts';
import { badInput, StoreError } from '../errors.ts';
import type { Parts } from '../feature.ts';
import { type CheckReadiness, health } from '../runtime/health.ts';
import type { Log, LogSettings } from '../runtime/log/log.ts';
import { addressOf } from '../runtime/log/request-log.ts';

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
      badInput(
        `The ${part}${fault?.instancePath ?? ''} ${fault?.message ?? 'is not valid'}.`,
      ),
  });
  app.server.maxConnections = maxConnections;
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw nothingHere();
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
  await app.register(logSettings, { log });
  for (const part of parts) part.operations?.(app);
  await app.listen({ port, host }).catch((error) => {
    throw Object.assign(error, { variables: 'OPERATIONS_' });
  });
  return app;
}

const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    level: { enum: [...Object.keys(pino.levels.values), 'silent'] },
    sample: { type: 'number', minimum: 0, maximum: 1 },
  },
};

/**
 * `GET /log` and `PUT /log`: `{"level":"debug","sample":0.1}`, or one of the
 * two. The settings apply to all workers, until a restart. PUT and JSON need a
 * preflight, which is not answered, so a web page in an operator's browser
 * cannot change them.
 */
async function logSettings(app: FastifyInstance, { log }: { log: Log }) {
  app.removeContentTypeParser('text/plain');
  app.get('/log', async () => log.settings);
  app.put<{ Body: Partial<LogSettings> }>(
    '/log',
    { schema: { body: settingsSchema } },
    async (request) => {
      const before = log.settings;
      const after = { ...before, ...request.body };
      // Always logged, so that a change of level explains the missing lines. A
      // silent log stays silent.
      if (before.level !== 'silent' || after.level !== 'silent')
        log.logger.level = 'info';
      const fields = { before, after, address: addressOf(request) };
      log.logger.info(fields, 'log settings changed');
      log.settings = after;
      log.onChange?.(after);
      return after;
    },
  );
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
