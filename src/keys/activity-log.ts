import type { FastifyInstance, onResponseHookHandler } from 'fastify';
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

  app.addHook('onRoute', (route) => {
    const { deprecation } = route.config ?? {};
    if (!deprecation) return;
    const { operation, removal } = deprecation;
    const count: onResponseHookHandler = ({ caller }, _reply, done) => {
      if (caller) activity.calledDeprecated(caller.id, operation, removal);
      done();
    };
    route.onResponse = [route.onResponse ?? [], count].flat();
  });
});
