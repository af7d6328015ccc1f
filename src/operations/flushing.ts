import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

export interface FlushingOptions {
  /** Objects that collect notes in memory. */
  notes: Array<{ flush(): Promise<void> }>;
}

const interval = 10_000;

/** Writes the collected notes every ten seconds and at shutdown. */
export const flushing = fastifyPlugin<FlushingOptions>(
  async (app: FastifyInstance, { notes }) => {
    const flush = async () => {
      for (const one of notes) {
        await one.flush().catch((err: unknown) => app.log.warn({ err }, 'notes are not written yet'));
      }
    };
    const timer = setInterval(flush, interval).unref();
    app.addHook('onClose', async () => {
      clearInterval(timer);
      await flush();
    });
  },
  { name: 'flushing' },
);
