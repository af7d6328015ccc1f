import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { serviceUnavailable } from '../../errors.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

/** Minimum number of samples: a single one may be a pause for garbage collection or another process. */
const fewestTurns = 4;
const resolution = 10;
/** Milliseconds between two checks of the delay. */
const checkInterval = 1000;
/** The share of a core that a full event loop uses at least. */
const busyShare = 0.7;

/**
 * Rejects new work with 503 while the event loop is overloaded, that is, while most of its turns in a second were long
 * and it used its core: turns are also long on a machine that other programs keep busy, where refusals help nobody.
 * Public routes, including health checks, are exempt.
 *
 * `maxDelay` is the median delay (ms) of the event loop beyond which it is overloaded; 0 for no limit.
 */
export const overload = fastifyPlugin<{ maxDelay: number }>(
  async (app: FastifyInstance, { maxDelay }) => {
    app.decorate('shedRequests', 0);
    if (maxDelay === 0) return;
    const delay = monitorEventLoopDelay({ resolution });
    delay.enable();
    let [used, since] = [process.threadCpuUsage(), performance.now()];
    let isFull = false;
    const incident = new Incident({
      onStart: () => app.log.warn('requests are refused: the event loop is full'),
      onEnd: (ms, refused) => app.log.info({ ms, refused }, 'requests are no longer refused'),
    });
    const timer = setInterval(() => {
      if (delay.count < fewestTurns) return;
      const { user, system } = process.threadCpuUsage(used);
      const isBusy = (user + system) / 1000 > busyShare * (performance.now() - since);
      isFull = isBusy && delay.percentile(50) / 1e6 - resolution > maxDelay;
      delay.reset();
      [used, since] = [process.threadCpuUsage(), performance.now()];
      if (!isFull) incident.recovered();
    }, checkInterval).unref();
    app.addHook('onClose', async () => {
      clearInterval(timer);
      delay.disable();
    });

    app.addHook('onRequest', (request, reply, done) => {
      if (!isFull || request.routeOptions.config.public === true) return done();
      app.shedRequests += 1;
      incident.occurred();
      reply.header('connection', 'close');
      done(serviceUnavailable('The service is overloaded; try again shortly.'));
    });
  },
  { name: 'overload', dependencies: ['lifecycle'] },
);
