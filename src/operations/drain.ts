import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

declare module 'fastify' {
  interface FastifyInstance {
    /** True from the moment on from which no new clients should come. */
    isDraining: boolean;
    /** Tells proxies and clients to go elsewhere, while everything is still served. */
    startDraining(): void;
  }
}

/**
 * While the service drains, every answer ends its connection: Node closes idle connections at once, but one that is
 * serving a request would be kept alive after its answer, and the drain would wait for it until it times out.
 */
export const drain = fastifyPlugin(async (app: FastifyInstance) => {
  let isDraining = false;
  const startDraining = () => {
    isDraining = true;
  };
  app.decorate('isDraining', { getter: () => isDraining });
  app.decorate('startDraining', startDraining);
  app.addHook('preClose', async () => startDraining());
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isDraining) reply.header('connection', 'close');
    done(null, payload);
  });
});
