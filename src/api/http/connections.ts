import { readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Incident } from '../../runtime/log/incident.ts';

/** Connections that the kernel queues until the process accepts them; Linux allows 4096 by default. */
export const backlog = 4096;
/** How long (ms) a connection stays open after its last answer, so that the answer arrives before the reset. */
const linger = 1000;
/** How often (ms) a closing server looks for connections without a request; the first look is after one interval. */
const interval = 500;

const latest = Symbol('latest response');
type Connection = Socket & { [latest]?: ServerResponse };

export function setLatestResponse(socket: Connection, response: ServerResponse): void {
  socket[latest] = response;
}

/** The response to the latest request of a connection. */
export function latestResponse(socket: Connection): ServerResponse | undefined {
  return socket[latest];
}

/**
 * Ends a connection, and destroys it a moment later: a client that keeps sending would otherwise hold it open, because
 * Node allows half-open connections and each byte restarts their only timer.
 */
export function endConnection(socket: Socket, lastBytes = ''): void {
  if (socket.writable) socket.end(lastBytes);
  setTimeout(() => socket.destroy(), linger).unref();
}

export interface ConnectionsOptions {
  /** Maximum number of client connections. */
  max: number;
}

/**
 * Limits client connections, so that file descriptors remain for the database; connections beyond the limit are closed
 * at once. When the server closes, it also closes the connections that have no request in progress: Node waits for
 * those that never sent one (browsers and undici open them in advance) and for those that never complete one.
 */
export const connections = fastifyPlugin<ConnectionsOptions>(
  async (app: FastifyInstance, { max }) => {
    const { server, log } = app;
    server.maxConnections = max;
    // A worker would pass the connection on to the next worker, which may be full, too.
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
      for (const socket of open) if (latestResponse(socket)?.closed ?? true) socket.destroy();
    };
    app.addHook('preClose', async () => {
      const timer = setInterval(closeUnused, interval);
      server.once('close', () => clearInterval(timer));
    });
  },
  { name: 'connections' },
);

export interface Needs {
  /** Connections that the process may open itself. */
  connections: number;
  /** Files that it may open. */
  files: number;
}

/**
 * How many client connections fit into the soft limit of open files (`ulimit -n`), beside the open files and the needs
 * of the process. A process serves no more than 10,000 well; each takes some 20 kB.
 *
 * @returns 16 to 10,000
 */
export function roomForConnections({ connections, files }: Needs, limit = openFilesLimit()): number {
  return Math.max(16, Math.min(10_000, limit - openFiles() - connections - files));
}

/** @returns the soft limit of open files; infinity for none */
export function openFilesLimit(): number {
  // @types/node lacks this option. Without it the report looks up the name of every peer.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } };
  report.excludeNetwork = excludeNetwork;
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY;
}

function openFiles(): number {
  try {
    return readdirSync('/dev/fd').length;
  } catch {
    return 64;
  }
}
