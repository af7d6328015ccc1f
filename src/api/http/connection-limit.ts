import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Episode } from '../../runtime/log/episode.ts';

export interface ConnectionLimitOptions {
  /** Connections of clients that may be open at a time. */
  max: number;
}

/**
 * Refuses connections beyond a limit: they are closed at once, those that are open are served. Without it a process
 * would run out of file descriptors, and could not open connections to the database either. The server tells each refusal
 * by its event `drop`.
 */
export const connectionLimit = fastifyPlugin<ConnectionLimitOptions>(
  async (app: FastifyInstance, { max }) => {
    const { server, log } = app;
    server.maxConnections = max;
    // A worker would hand it to the next one, which may be as full, and so on without an end.
    Object.assign(server, { dropMaxConnection: true });
    const refusals = new Episode({
      began: () => log.warn({ maxConnections: max }, 'connections are refused'),
      ended: (ms, refused) => log.info({ ms, refused }, 'connections are no longer refused'),
    });
    server.on('drop', () => {
      refusals.noticed();
      refusals.passed();
    });
  },
  { name: 'connection-limit' },
);
