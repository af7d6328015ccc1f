import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { KeyActivity } from './key-activity.ts';

export interface ActivityLogOptions {
  activity: KeyActivity;
}

const interval = 10_000;

/** Writes what keys do every ten seconds and at the end, and counts the calls of deprecated REST operations. */
export const activityLog = fastifyPlugin<ActivityLogOptions>(async (app: FastifyInstance, { activity }) => {
  const flush = () =>
    activity.flush().catch((err: unknown) => app.log.warn({ err }, 'key activity is not written yet'));
  const timer = setInterval(flush, interval).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    await flush();
  });

  app.addHook('onResponse', async ({ caller, routeOptions }) => {
    const { deprecation } = routeOptions.config;
    if (caller && deprecation) activity.calledDeprecated(caller.id, deprecation.operation, deprecation.removal);
  });
});
