/**
 * Collects notes in memory and writes them from time to time, so that no request waits for it. Notes since the last
 * `flush` are lost when the process is killed.
 */
export class Gathered<Note> {
  readonly #write: (notes: Note[]) => Promise<unknown>;
  readonly #merge: (earlier: Note, later: Note) => Note;
  #notes = new Map<string, Note>();

  /** @param merge combines two notes with the same key */
  constructor(write: (notes: Note[]) => Promise<unknown>, merge: (earlier: Note, later: Note) => Note) {
    this.#write = write;
    this.#merge = merge;
  }

  add(key: string, note: Note): void {
    const earlier = this.#notes.get(key);
    this.#notes.set(key, earlier === undefined ? note : this.#merge(earlier, note));
  }

  /** Writes the collected notes. When that fails, they are kept for the next flush. */
  async flush(): Promise<void> {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    try {
      await this.#write([...notes.values()]);
    } catch (error) {
      const later = this.#notes;
      this.#notes = notes;
      for (const [key, note] of later) this.add(key, note);
      throw error;
    }
  }
}
