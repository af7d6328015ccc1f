import fastifyPlugin from 'fastify-plugin';

/**
 * While the service drains, every answer ends its connection: Node closes idle connections at once, but one that is
 * serving a request would be kept alive after its answer, and the drain would wait for it until it times out.
 */
export const drain = fastifyPlugin(async (app) => {
  let draining = false;
  app.addHook('preClose', async () => {
    draining = true;
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) reply.header('connection', 'close');
    done(null, payload);
  });
});
