import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { DatabaseUnavailable } from '../database/postgres-errors.ts';
import { StoreError } from '../errors.ts';

/**
 * Collects notes in memory and writes them periodically, so that no request
 * waits for the write. A killed process loses the notes since the last `flush`.
 * Notes that may have been stored are dropped if their statement has `isWrite`;
 * others are written again, so their statement must change nothing when it is
 * repeated (`touchKeys`).
 */
export class WriteBehind<Note> {
  #notes = new Map<string, Note>();

  /** @param merge combines two notes with the same key */
  constructor(
    private readonly write: (notes: Note[]) => Promise<unknown>,
    private readonly merge: (earlier: Note, later: Note) => Note,
  ) {}

  add(key: string, note: Note): void {
    const earlier = this.#notes.get(key);
    this.#notes.set(
      key,
      earlier === undefined ? note : this.merge(earlier, note),
    );
  }

  /**
   * Writes the collected notes. After a failure they are kept for the next
   * flush, unless the outcome is unknown.
   */
  async flush(): Promise<void> {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    try {
      await this.write([...notes.values()]);
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable && error.isOutcomeUnknown)) {
        const later = this.#notes;
        this.#notes = notes;
        for (const [key, note] of later) this.add(key, note);
      }
      throw error;
    }
  }
}

/**
 * Logs that work in the background has failed and will be repeated. The log
 * reports an unreachable database elsewhere.
 *
 * @param isLast true when it is not repeated
 */
export function logPostponed(
  { log }: FastifyInstance,
  error: unknown,
  message: string,
  isLast = false,
): void {
  log[error instanceof StoreError && !isLast ? 'debug' : 'warn'](
    { err: error },
    message,
  );
}

const flushInterval = 10_000;

/** Flushes the buffers every ten seconds and at shutdown. */
export const flushing = fastifyPlugin<{
  buffers: Array<{ flush(): Promise<void> }>;
}>(
  async (app: FastifyInstance, { buffers }) => {
    const flush = async (isLast = false) => {
      for (const buffer of buffers) {
        await buffer
          .flush()
          .catch((error) =>
            logPostponed(app, error, 'notes are not written yet', isLast),
          );
      }
    };
    const timer = setInterval(flush, flushInterval).unref();
    app.addHook('onClose', async () => {
      clearInterval(timer);
      await flush(true);
    });
  },
  { name: 'flushing' },
);
