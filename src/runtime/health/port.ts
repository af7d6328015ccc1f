import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { StoreError } from '../../errors.ts';

export interface OperationsPortOptions {
  port: number;
  host: string;
  /** What can be asked there. */
  plugins: FastifyPluginAsync[];
  /** Sends failures as Error bodies, like those of the service. */
  sendError: Parameters<FastifyInstance['setErrorHandler']>[0];
}

/** Of its connections at a time, so that those of the service always find room. */
const maxConnections = 32;

/**
 * Opens the port for operators and their tools. It needs no key, so it listens on an address of its own, which no
 * client of the service should reach.
 */
export async function openOperationsPort({ port, host, plugins, sendError }: OperationsPortOptions) {
  const app = Fastify({
    logger: false,
    bodyLimit: 16_384,
    requestTimeout: 10_000,
    http: { connectionsCheckingInterval: 1000 },
    // It is the last to close, and nobody who asks half a question may hold that up.
    forceCloseConnections: true,
    // What is sent is what is meant.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    schemaErrorFormatter: ([fault], part) =>
      new StoreError('BAD_USER_INPUT', `The ${part}${fault?.instancePath ?? ''} ${fault?.message ?? 'is not valid'}.`),
  });
  app.server.maxConnections = maxConnections;
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new StoreError('NOT_FOUND', 'There is nothing at this address.');
  });
  for (const plugin of plugins) await app.register(plugin);
  await app.listen({ port, host }).catch((error) => {
    throw Object.assign(error, { variables: 'OPERATIONS_' });
  });
  return app;
}
