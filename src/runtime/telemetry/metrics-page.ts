import type { FastifyPluginAsync } from 'fastify';
import { contentType } from './metrics.ts';

/** `/metrics`, in Prometheus' text format. Who asks meanwhile gets the same: a database that hangs is asked once. */
export function metricsPage(text: () => Promise<string>): FastifyPluginAsync {
  let underWay: Promise<string> | undefined;
  const textOnce = () => {
    underWay ??= text().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
  return async (app) => {
    app.get('/metrics', async (_request, reply) => reply.type(contentType).send(await textOnce()));
  };
}
