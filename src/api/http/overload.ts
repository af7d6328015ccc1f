import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import { Unavailable } from '../../errors.ts';

// More than the event loop can do.

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

/**
 * Minimum number of samples: a single one may be a pause for garbage collection
 * or another process.
 */
const fewestTurns = 4;
const resolution = 10;
/** Milliseconds between two checks of the delay. */
const checkInterval = 1000;
/** The share of a core that a full event loop uses at least. */
const busyShare = 0.7;

/**
 * Rejects new work with 503 while the event loop is overloaded, that is, while
 * most of its turns in a second were long and it used its core: turns are also
 * long on a machine that other programs keep busy, where refusals do not help.
 * Public routes, including health checks, are exempt.
 *
 * `maxDelay` is the median delay (ms) of the event loop beyond which it is
 * overloaded; 0 for no limit.
 */
export function overload(app: FastifyInstance, maxDelay: number): void {
  app.decorate('shedRequests', 0);
  if (maxDelay === 0) return;
  const { log } = app;
  let isFull = false;
  const refusals = new Incident({
    onStart: () => log.warn('requests are refused: the event loop is full'),
    onEnd: (ms, refused) =>
      log.info({ ms, refused }, 'requests are no longer refused'),
  });
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  let used = process.threadCpuUsage();
  let since = performance.now();
  const timer = setInterval(() => {
    if (delay.count < fewestTurns) return;
    const { user, system } = process.threadCpuUsage(used);
    const microseconds = 1000 * (performance.now() - since);
    const isBusy = user + system > busyShare * microseconds;
    isFull = isBusy && delay.percentile(50) / 1e6 > maxDelay + resolution;
    if (!isFull) refusals.recovered();
    delay.reset();
    used = process.threadCpuUsage();
    since = performance.now();
  }, checkInterval).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    delay.disable();
  });
  app.addHook('onRequest', ({ routeOptions }, reply, done) => {
    if (!isFull || routeOptions.config.public === true) return done();
    app.shedRequests += 1;
    refusals.occurred();
    reply.header('connection', 'close');
    done(new Unavailable('The service is overloaded; try again shortly.'));
  });
}
