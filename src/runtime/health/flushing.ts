import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';

export interface FlushingOptions {
  /** Objects that collect notes in memory. */
  notes: Array<{ flush(): Promise<void> }>;
}

const interval = 10_000;

/** Writes the collected notes every ten seconds and at shutdown. */
export const flushing = fastifyPlugin<FlushingOptions>(
  async (app: FastifyInstance, { notes }) => {
    const flush = async (isLast = false) => {
      for (const one of notes) {
        await one.flush().catch((err: unknown) => {
          // A database that is away has its own lines in the log, and the notes are written when it is back.
          app.log[err instanceof StoreError && !isLast ? 'debug' : 'warn']({ err }, 'notes are not written yet');
        });
      }
    };
    const timer = setInterval(flush, interval).unref();
    app.addHook('onClose', async () => {
      clearInterval(timer);
      await flush(true);
    });
  },
  { name: 'flushing' },
);
