import type { Socket } from 'node:net';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { SharedBudget } from '../../shared-budget.ts';

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
) {
  const { server, log } = app;
  server.maxConnections = max;
  // Otherwise a worker would pass the connection to the next worker, which may
  // be full, too.
  Object.assign(server, { dropMaxConnection: true });
  const refusals = new Incident(log, {
    begins: 'connections are refused',
    ends: 'connections are no longer refused',
    count: 'refused',
  });
  server.on('drop', () => {
    refusals.occurred({ maxConnections: max });
    refusals.recovered();
  });
  const budget = new SharedBudget(isProxied ? Number.MAX_VALUE : max);
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    if (!budget.take(network)) {
      server.emit('drop');
      return socket.destroy();
    }
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      budget.add(network, -1);
    });
  });

  app.addHook('preClose', async () => {
    const began = performance.now();
    const timer = setInterval(() => {
      const isLate = performance.now() - began > lastUpload;
      for (const socket of open) {
        const { latestResponse: response } = socket;
        if (!response || response.closed) socket.destroy();
        else if (isLate && !response.req.complete)
          server.emit('clientError', uploadTimeout, socket);
      }
    }, sampleInterval);
    server.once('close', () => clearInterval(timer));
  });
}

/** The most that one process serves well. */
const mostServed = 10_000;

/**
 * Derives the maximum number of client connections from the limit of open files
 * (`ulimit -n`). It reserves 128 files for the process, and four per pooled
 * connection: the embedded store holds both ends, and each replica has a pool.
 *
 * @returns 16 to 10,000
 */
export function roomForConnections(poolMax: number) {
  // @types/node lacks this option. Without it, the report resolves the name of
  // every peer.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  const limit = Number(userLimits?.open_files?.soft);
  const free = limit - 128 - 4 * poolMax;
  // NaN: there is no limit, or the platform has none.
  if (Number.isNaN(free)) return mostServed;
  return Math.min(Math.max(free, 16), mostServed);
}
