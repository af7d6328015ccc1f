import type { FastifyInstance } from 'fastify';
import { isOutcomeUnknown } from '../database/postgres-errors.ts';
import { every } from './background.ts';

/**
 * Collects notes in memory and writes them periodically, so that no request
 * waits for the write. A killed process loses the notes since the last `flush`.
 * After an unknown outcome a statement with `isWrite` (counts) loses its notes.
 * One without it (last uses, `touchKeys`) is sent again: a repetition changes
 * nothing.
 */
export class WriteBehind<Note> {
  #notes = new Map<string, Note>();

  /** @param merge combines two notes with the same key */
  constructor(
    private readonly write: (notes: Note[]) => Promise<unknown>,
    private readonly merge: (earlier: Note, later: Note) => Note,
  ) {}

  add(key: string, note: Note) {
    const earlier = this.#notes.get(key);
    const isFirst = earlier === undefined;
    this.#notes.set(key, isFirst ? note : this.merge(earlier, note));
  }

  /**
   * Writes the collected notes. After a failure they are kept for the next
   * flush, unless the outcome is unknown.
   */
  async flush() {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    try {
      await this.write([...notes.values()]);
    } catch (error) {
      if (!isOutcomeUnknown(error)) {
        const later = this.#notes;
        this.#notes = notes;
        for (const [key, note] of later) this.add(key, note);
      }
      throw error;
    }
  }
}

/** Milliseconds; with jitter at most nine seconds. */
const flushInterval = 6000;
const notWritten = 'notes are not written yet';

/** Flushes a buffer within ten seconds, and at shutdown. */
export function flushRegularly(
  app: FastifyInstance,
  buffer: { flush(): Promise<void> },
) {
  // Fastify calls the hooks that are added later first.
  app.addHook('onClose', () =>
    buffer.flush().catch((err) => app.log.warn({ err }, notWritten)),
  );
  every(app, flushInterval, () => buffer.flush(), notWritten);
}
