import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { tryAgain } from '../../errors.ts';
import { Incident } from '../../runtime/log/incident.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Requests refused so far because the event loop was full. */
    shedRequests: number;
  }
}

export interface OverloadOptions {
  /** Median delay (ms) of the event loop's turns beyond which it is full; 0 for no limit. */
  maxDelay: number;
}

/** Fewer turns say little: one may be a pause for garbage collection, or of a machine that is busy otherwise. */
const fewestTurns = 4;
const resolution = 10;
/** Milliseconds between two looks at the event loop. */
const interval = 1000;

/**
 * Refuses new work with 503 while the event loop is full: for a second, most of its turns were long. The kernel's queue
 * of new connections is served once a turn, so new clients would wait for seconds, which no other figure shows. Public
 * routes answer all the same; health checks are among them.
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
