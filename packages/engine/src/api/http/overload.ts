import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import { Unavailable } from '../../errors.ts';
import { holderOf } from './lifecycle.ts';

// More than the event loop can do.

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

/**
 * Accepts queued connections before it begins requests. Node accepts one
 * connection per turn of the event loop (libuv, `uv__server_io`), so of
 * thousands of new clients the last would wait for seconds while the requests
 * of the first make turns long. Nearly every turn accepts a connection, and the
 * event loop is busy: more connections are queued. Requests then wait until all
 * are accepted, at most a second. For the same time afterwards none has to wait.
 * Public routes, including health checks, never wait.
 */
export function acceptConnectionsFirst(app: FastifyInstance) {
  let accepted = 0;
  let isWatching = false;
  /** undefined while no request has to wait. */
  let pause: Promise<void> | undefined;
  const countTurns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
  const isQueuedFor = async (milliseconds: number) => {
    accepted = 0;
    const turns = countTurns();
    const before = performance.eventLoopUtilization();
    await sleep(milliseconds, undefined, { ref: false });
    const { utilization } = performance.eventLoopUtilization(before);
    const nearlyAll = 0.8 * (countTurns() - turns);
    const fewest = pause ? 1 : Math.max(2, nearlyAll);
    return utilization > 0.5 && accepted >= fewest;
  };
  const watch = async () => {
    isWatching = true;
    let free = 100;
    while (await isQueuedFor(free)) {
      const since = performance.now();
      const { promise, resolve } = Promise.withResolvers<void>();
      pause = promise;
      do free = performance.now() - since;
      while (free < 1000 && (await isQueuedFor(10)));
      pause = undefined;
      resolve();
    }
    isWatching = false;
  };
  app.server.on('connection', () => {
    if (!isWatching) void watch();
    accepted += 1;
  });
  app.addHook('onRequest', (request, _reply, done) => {
    const waits = pause && request.routeOptions.config.public !== true;
    if (waits) void pause?.then(() => done());
    else done();
  });
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
 * Only the caller whose work made most turns long is refused, or, when none is
 * known, all are.
 * Public routes, including health checks, are exempt.
 *
 * `maxDelay` is the median delay (ms) of the event loop beyond which it is
 * overloaded; 0 for no limit.
 */
export function overload(app: FastifyInstance, maxDelay: number) {
  app.decorate('shedRequests', 0);
  if (maxDelay === 0) return;
  let isFull = false;
  let heaviest = app.turns.takeHeaviest();
  const refusals = new Incident(app.log, {
    begins: 'requests are refused: the event loop is full',
    ends: 'requests are no longer refused',
    count: 'refused',
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
    heaviest = app.turns.takeHeaviest();
    if (!isFull) refusals.recovered();
    delay.reset();
    used = process.threadCpuUsage();
    since = performance.now();
  }, checkInterval).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    delay.disable();
  });
  app.addHook('onRequest', (request, reply, done) => {
    const mayRefuse = isFull && request.routeOptions.config.public !== true;
    if (!mayRefuse) return done();
    const holder = holderOf(request);
    if ((heaviest ?? holder) !== holder) return done();
    app.shedRequests += 1;
    refusals.occurred();
    reply.header('connection', 'close');
    done(new Unavailable('The service is overloaded; try again shortly.'));
  });
}
