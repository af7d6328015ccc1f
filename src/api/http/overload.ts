import type { Socket } from 'node:net';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { Unavailable } from '../../errors.ts';
import { SharedBudget } from '../../shared-budget.ts';

// More than the process can take: connections, connections at a time, requests,
// large bodies and answers.

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

/** How often (ms) a closing server looks at its connections. */
const sampleInterval = 500;
const uploadTimeout = Object.assign(new Error('The body is late.'), {
  code: 'ERR_HTTP_REQUEST_TIMEOUT',
});

/**
 * Limits client connections to `max`, so that file descriptors remain for the
 * database; it closes further connections immediately. Networks of clients
 * share the limit, unless connections come from a proxy. When the server
 * closes, it also closes connections without a request in progress: Node would
 * wait for connections that never sent a request (browsers and undici open them
 * in advance) or never complete one. Bodies that have not arrived after
 * `lastUpload` ms get 408; Node has stopped checking them.
 */
export function connections(
  app: FastifyInstance,
  {
    max,
    lastUpload,
    isProxied,
  }: { max: number; lastUpload: number; isProxied: boolean },
): void {
  const { server, log } = app;
  server.maxConnections = max;
  // Otherwise a worker would pass the connection to the next worker, which may
  // be full, too.
  Object.assign(server, { dropMaxConnection: true });
  const refusals = new Incident({
    onStart: () => log.warn({ maxConnections: max }, 'connections are refused'),
    onEnd: (ms, refused) =>
      log.info({ ms, refused }, 'connections are no longer refused'),
  });
  server.on('drop', () => {
    refusals.occurred();
    refusals.recovered();
  });
  const budget = new SharedBudget(max);
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    if (!isProxied && !budget.take(network)) {
      server.emit('drop');
      return socket.destroy();
    }
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      if (!isProxied) budget.add(network, -1);
    });
  });

  app.addHook('preClose', async () => {
    const began = performance.now();
    const timer = setInterval(() => {
      const isLate = performance.now() - began > lastUpload;
      for (const socket of open) {
        const { latestResponse } = socket;
        if (!latestResponse || latestResponse.closed) socket.destroy();
        else if (isLate && !latestResponse.req.complete)
          server.emit('clientError', uploadTimeout, socket);
      }
    }, sampleInterval);
    server.once('close', () => clearInterval(timer));
  });
}

/**
 * Derives the maximum number of client connections from the limit of open files
 * (`ulimit -n`). It reserves 128 files for the process, and four per pooled
 * connection: the embedded store holds both ends, and each replica has a pool.
 *
 * @returns 16 to 10,000, the most that one process serves well
 */
export function roomForConnections(poolMax: number): number {
  // @types/node lacks this option. Without it, the report resolves the name of
  // every peer.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  const limit = Number(userLimits?.open_files?.soft);
  return Math.max(
    16,
    Math.min(10_000, (limit || Number.POSITIVE_INFINITY) - 128 - 4 * poolMax),
  );
}

/**
 * Accepts queued connections before it begins requests. Node accepts one
 * connection per turn of the event loop (libuv, `uv__server_io`), so of
 * thousands of new clients the last would wait for seconds while the requests
 * of the first make turns long. If nearly every turn accepts a connection, and
 * the event loop is busy, more are queued: then requests wait until all are
 * accepted, a second at most, and are then served for as long as they waited.
 * Public routes, including health checks, never wait.
 */
export function acceptConnectionsFirst(app: FastifyInstance): void {
  let accepted = 0;
  let isWatching = false;
  /** The requests that wait; undefined while none has to. */
  let waiting: Array<() => void> | undefined;
  const countTurns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
  const isQueuedFor = async (milliseconds: number) => {
    accepted = 0;
    const turns = countTurns();
    const before = performance.eventLoopUtilization();
    await sleep(milliseconds, undefined, { ref: false });
    const { utilization } = performance.eventLoopUtilization(before);
    const nearlyAll = Math.max(2, 0.8 * (countTurns() - turns));
    return utilization > 0.5 && accepted >= (waiting ? 1 : nearlyAll);
  };
  const watch = async () => {
    isWatching = true;
    let isQueued = await isQueuedFor(100);
    while (isQueued) {
      waiting = [];
      const since = performance.now();
      const waited = () => performance.now() - since;
      do isQueued = await isQueuedFor(10);
      while (isQueued && waited() < 1000);
      for (const begin of waiting) begin();
      waiting = undefined;
      if (isQueued) isQueued = await isQueuedFor(waited());
    }
    isWatching = false;
  };
  app.server.on('connection', () => {
    if (!isWatching) void watch();
    accepted += 1;
  });
  app.addHook('onRequest', ({ routeOptions }, _reply, done) => {
    const mustWait = waiting && routeOptions.config.public !== true;
    if (mustWait) waiting?.push(done);
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
 * Public routes, including health checks, are exempt.
 *
 * `maxDelay` is the median delay (ms) of the event loop beyond which it is
 * overloaded; 0 for no limit.
 */
export function overload(app: FastifyInstance, maxDelay: number): void {
  app.decorate('shedRequests', 0);
  if (maxDelay === 0) return;
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  let used = process.threadCpuUsage();
  let since = performance.now();
  let isFull = false;
  const incident = new Incident({
    onStart: () => app.log.warn('requests are refused: the event loop is full'),
    onEnd: (ms, refused) =>
      app.log.info({ ms, refused }, 'requests are no longer refused'),
  });
  const timer = setInterval(() => {
    if (delay.count < fewestTurns) return;
    const { user, system } = process.threadCpuUsage(used);
    const share = (user + system) / 1000 / (performance.now() - since);
    const median = delay.percentile(50) / 1e6 - resolution;
    isFull = share > busyShare && median > maxDelay;
    delay.reset();
    used = process.threadCpuUsage();
    since = performance.now();
    if (!isFull) incident.recovered();
  }, checkInterval).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    delay.disable();
  });

  app.addHook('onRequest', ({ routeOptions }, reply, done) => {
    if (!isFull || routeOptions.config.public === true) return done();
    app.shedRequests += 1;
    incident.occurred();
    reply.header('connection', 'close');
    done(new Unavailable('The service is overloaded; try again shortly.'));
  });
}

/** Bytes. The number of connections bounds smaller bodies. */
export const largeBodyBytes = 65_536;
