import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

/** How often (ms) a closing server closes connections without a request. */
const interval = 500;

/**
 * Limits client connections to `max`, so that file descriptors remain for the database; it closes further connections
 * immediately. When the server closes, it also closes connections without a request in progress: Node would wait for
 * connections that never sent a request (browsers and undici open them in advance) or never complete one.
 */
export const connections = fastifyPlugin<{ max: number }>(
  async (app: FastifyInstance, { max }) => {
    const { server, log } = app;
    server.maxConnections = max;
    // Otherwise a worker would pass the connection to the next worker, which may be full, too.
    Object.assign(server, { dropMaxConnection: true });
    const refusals = new Incident({
      onStart: () => log.warn({ maxConnections: max }, 'connections are refused'),
      onEnd: (ms, refused) => log.info({ ms, refused }, 'connections are no longer refused'),
    });
    server.on('drop', () => {
      refusals.occurred();
      refusals.recovered();
    });

    const open = new Set<Socket>();
    server.on('connection', (socket) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    const closeUnused = () => {
      for (const socket of open) if (socket.latestResponse?.closed ?? true) socket.destroy();
    };
    app.addHook('preClose', async () => {
      const timer = setInterval(closeUnused, interval);
      server.once('close', () => clearInterval(timer));
    });
  },
  { name: 'connections' },
);

/**
 * Derives the maximum number of client connections from the limit of open files (`ulimit -n`). It reserves 128 files
 * for the process, and four per pooled connection: the embedded store holds both ends, and each replica has a pool.
 *
 * @returns 16 to 10,000, the most that one process serves well
 */
export function roomForConnections(poolMax: number): number {
  // @types/node lacks this option. Without it, the report resolves the name of every peer.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } };
  const limit = Number(userLimits?.open_files?.soft);
  return Math.max(16, Math.min(10_000, (limit || Number.POSITIVE_INFINITY) - 128 - 4 * poolMax));
}

/**
 * Accepts queued connections before it begins requests. Node accepts one connection per turn of the event loop (libuv,
 * `uv__server_io`), so of thousands of new clients the last would wait for seconds while the requests of the first make
 * turns long. If nearly every turn accepts a connection, and the event loop is busy, more are queued: then requests
 * wait until all are accepted, a second at most, and are then served for as long as they waited. Public routes,
 * including health checks, never wait.
 */
export const acceptance = fastifyPlugin(
  async (app: FastifyInstance) => {
    /** The requests that wait; undefined while none has to. */
    let waiting: Array<() => void> | undefined;
    let [since, accepted, turns] = [0, 0, 0];
    let before = performance.eventLoopUtilization();
    let timer: NodeJS.Timeout | undefined;
    const countTurns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
    const checkAfter = (milliseconds: number) => {
      [accepted, turns, before] = [0, countTurns(), performance.eventLoopUtilization()];
      timer = setTimeout(check, milliseconds).unref();
    };
    const check = () => {
      const waited = performance.now() - since;
      const isBusy = performance.eventLoopUtilization(before).utilization > 0.5;
      const isQueued = isBusy && accepted >= (waiting ? 1 : Math.max(2, 0.8 * (countTurns() - turns)));
      if (waiting && isQueued && waited < 1000) return checkAfter(10);
      const isOver = waiting !== undefined;
      for (const begin of waiting ?? []) begin();
      waiting = isOver || !isQueued ? undefined : [];
      if (waiting) since = performance.now();
      if (isQueued) checkAfter(isOver ? waited : 10);
      else timer = undefined;
    };
    app.server.on('connection', () => {
      if (!timer) checkAfter(100);
      accepted += 1;
    });
    app.addHook('onRequest', (request, _reply, done) => {
      if (waiting && request.routeOptions.config.public !== true) waiting.push(done);
      else done();
    });
  },
  { name: 'acceptance', dependencies: ['lifecycle'] },
);
