import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Incident } from '../../../packages/log/src/incident.ts';
import { tryAgain } from '../../errors.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

export interface OverloadOptions {
  /** Median delay (ms) of the event loop beyond which it is overloaded; 0 for no limit. */
  maxDelay: number;
}

/** Minimum number of samples: a single one may be a pause for garbage collection or another process. */
const fewestTurns = 4;
const resolution = 10;
/** Milliseconds between two checks. */
const interval = 1000;

/**
 * Rejects new work with 503 while the event loop is overloaded, that is, while most of its turns in a second were long. The
 * accept queue is served once per turn, so new clients would wait for seconds, which no other metric shows. Public routes,
 * including health checks, are exempt.
 */
export const overload = fastifyPlugin<OverloadOptions>(
  async (app: FastifyInstance, { maxDelay }) => {
    app.decorate('shedRequests', 0);
    if (maxDelay === 0) return;
    const delay = monitorEventLoopDelay({ resolution });
    delay.enable();
    let isFull = false;
    const incident = new Incident({
      onStart: () => app.log.warn('requests are refused: the event loop is full'),
      onEnd: (ms, refused) => app.log.info({ ms, refused }, 'requests are no longer refused'),
    });
    const timer = setInterval(() => {
      if (delay.count < fewestTurns) return;
      isFull = delay.percentile(50) / 1e6 - resolution > maxDelay;
      delay.reset();
      if (!isFull) incident.recovered();
    }, interval).unref();
    app.addHook('onClose', async () => {
      clearInterval(timer);
      delay.disable();
    });

    app.addHook('onRequest', (request, reply, done) => {
      if (!isFull || request.routeOptions.config.public === true) return done();
      app.shedRequests += 1;
      incident.occurred();
      reply.header('connection', 'close');
      done(tryAgain('The service is overloaded; try again shortly.'));
    });
  },
  { name: 'overload', dependencies: ['lifecycle'] },
);
