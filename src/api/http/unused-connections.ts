import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

/**
 * How often (ms) they are looked for while the server closes, because some clients open one when they lose another. A
 * request that is on its way has arrived before the first look.
 */
const interval = 500;

/**
 * Closes connections on which nothing has ever come when the server ends. Clients open them in advance (browsers, undici
 * after an aborted request); Node does not count them as idle, and would wait for their first request.
 */
export const unusedConnections = fastifyPlugin(
  async (app: FastifyInstance) => {
    const { server } = app;
    const open = new Set<Socket>();
    server.on('connection', (socket) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    const close = () => {
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    };
    app.addHook('preClose', async () => {
      const timer = setInterval(close, interval);
      server.once('close', () => clearInterval(timer));
    });
  },
  { name: 'unused-connections' },
);
