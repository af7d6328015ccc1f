import { hash, randomBytes } from 'node:crypto';
import { StoreError } from '../../errors.ts';
import type { Bulk, Item, Outcome } from '../../storage/records/bulk.ts';
import { parameterOf } from '../../storage/records/parameter.ts';
import type { Read } from './format.ts';

export interface ImportOptions {
  /** Whether items keep their ids or get new ones; decided by the first item when undefined. */
  ids?: 'keep' | 'new' | undefined;
  /** Also ids below the last one that was given out. */
  anywhere?: boolean;
  /** Items that get new ids are added even when they were before. */
  again?: boolean;
  /** Only checks. */
  dryRun?: boolean;
  /** Checks an item, with its id or without. @throws StoreError BAD_USER_INPUT */
  check: Record<'keep' | 'new', (input: object) => object>;
  refused(line: number, reason: string): void;
  progress(read: number): void;
  /** Ends it after the batch that is under way. */
  signal: AbortSignal;
}

export interface Imported {
  added: number;
  /** Were there already. */
  same: number;
  refused: number;
  isInterrupted: boolean;
  /** Why it ended before the end. */
  failure?: Error;
}

interface Line {
  line: number;
  item: Item;
}

/** In items, and in bytes of text. Creations wait while a batch is added. */
const batch = { items: 2000, bytes: 4 * 1024 * 1024 };

/** Adds what a file holds to a table, batch by batch, each in a transaction: what was added stays, however this ends. */
export async function importInto(bulk: Bulk, source: AsyncIterable<Read>, options: ImportOptions): Promise<Imported> {
  const run = new Run(bulk, options);
  try {
    for await (const read of source) {
      if (options.signal.aborted) break;
      await run.take(read);
    }
    return await run.end();
  } catch (error) {
    return run.end(error as Error);
  }
}

class Run {
  readonly #result: Imported = { added: 0, same: 0, refused: 0, isInterrupted: false };
  #lines: Line[] = [];
  #bytes = 0;
  #read = 0;
  #ids: 'keep' | 'new' | undefined;
  /** The next batch is read and checked meanwhile. */
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly bulk: Bulk,
    private readonly options: ImportOptions,
  ) {
    this.#ids = options.ids;
  }

  async take(read: Read): Promise<void> {
    this.#read += 1;
    if ('fault' in read) return this.#refuse(read.line, read.fault);
    const { line, input } = read as { line: number; input: Item };
    this.#ids ??= (input.id ?? undefined) === undefined ? 'new' : 'keep';
    try {
      const item = this.options.check[this.#ids](input) as Item;
      this.#lines.push({ line, item });
      this.#bytes += this.bulk.table.sizeOf(item);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#refuse(line, error.message);
    }
    if (this.#lines.length >= batch.items || this.#bytes >= batch.bytes) await this.#send();
  }

  /** @param failure why no more can be read; what has been read before is added */
  async end(failure?: Error): Promise<Imported> {
    const isInterrupted = this.options.signal.aborted;
    try {
      if (!isInterrupted) await this.#send();
      await this.#underWay;
    } catch (error) {
      return { ...this.#result, isInterrupted, failure: error as Error };
    }
    return { ...this.#result, isInterrupted, ...(failure && !isInterrupted && { failure }) };
  }

  async #send(): Promise<void> {
    const lines = this.#lines;
    [this.#lines, this.#bytes] = [[], 0];
    await this.#underWay;
    this.options.progress(this.#read);
    if (lines.length === 0) return;
    this.#underWay = this.#add(lines).then((outcomes) => this.#count(lines, outcomes));
    // It is awaited with the next batch.
    this.#underWay.catch(() => undefined);
  }

  async #add(lines: Line[]): Promise<Outcome[]> {
    const items = lines.map(({ item }) => item);
    if (this.options.dryRun) return items.map(() => 'added');
    if (this.#ids === 'keep') return this.#addWithIds(items);
    const isNew = await this.bulk.addOnce(items, this.#claimFor(lines));
    return items.map(() => (isNew ? 'added' : 'same'));
  }

  /** An id that stands in a batch twice is told apart by adding the second one later. */
  async #addWithIds(items: Item[]): Promise<Outcome[]> {
    const places = new Map<unknown, number>();
    items.forEach(({ id }, place) => void (places.has(id) || places.set(id, place)));
    const first = await this.bulk.addWithIds(
      [...places.values()].map((place) => items[place] as Item),
      this.options.anywhere === true,
    );
    const outcomes = new Map([...places.values()].map((place, at) => [place, first[at] as Outcome]));
    const repeated = items.map((_, place) => place).filter((place) => !outcomes.has(place));
    if (repeated.length > 0) {
      const second = await this.#addWithIds(repeated.map((place) => items[place] as Item));
      repeated.forEach((place, at) => void outcomes.set(place, second[at] as Outcome));
    }
    return items.map((_, place) => outcomes.get(place) as Outcome);
  }

  /** The same for the same lines at the same place. */
  #claimFor(lines: Line[]): Buffer {
    if (this.options.again) return randomBytes(32);
    const { inserted } = this.bulk.table;
    const values = lines.map(({ line, item }) => [line, ...inserted.map(({ member }) => parameterOf(item[member]))]);
    return hash('sha256', JSON.stringify(values), 'buffer');
  }

  #count(lines: Line[], outcomes: Outcome[]): void {
    outcomes.forEach((outcome, at) => {
      if (typeof outcome === 'string') this.#result[outcome] += 1;
      else this.#refuse((lines[at] as Line).line, outcome.reason);
    });
  }

  #refuse(line: number, reason: string): void {
    this.#result.refused += 1;
    this.options.refused(line, reason);
  }
}
