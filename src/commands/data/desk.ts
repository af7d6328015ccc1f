import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Database } from '../../storage/database/database.ts';
import { checker } from '../../storage/input/check.ts';
import type { Int64 } from '../../storage/input/int64.ts';
import { Bulk } from '../../storage/records/bulk.ts';
import { assertFree, writeGathered, writeWhole } from '../files/whole-file.ts';
import type { Collection } from './collection.ts';
import { textOf } from './export.ts';
import { type Format, type FormatName, formatOf, formats, type Read } from './format.ts';
import { type Imported, type ImportOptions, importInto } from './import.ts';
import { itemSchemas } from './item.schema.ts';
import { samples } from './seed.ts';
import { sourceOf } from './source.ts';

/** Who sees how it goes on, and may end it. */
export interface Watch {
  progress(items: number, total?: number): void;
  refused(line: number, reason: string): void;
  signal: AbortSignal;
}

export interface ExportFlags {
  /** A file; standard output when undefined. */
  output?: string;
  force?: boolean;
  format?: FormatName;
  after?: Int64;
}

export interface ImportFlags extends Pick<ImportOptions, 'ids' | 'anywhere' | 'again' | 'dryRun'> {
  /** A file; standard input when undefined. */
  input?: string;
  format?: FormatName;
}

export interface Limits {
  /** How many bytes of a file an item may have. */
  longestItem: number;
}

type AtDatabase = <T>(work: (database: Database) => Promise<T>) => Promise<T>;

/** Carries out `seed`, `export` and `import`. Each returns how long (ms) it took, without opening the database. */
export class DataDesk {
  constructor(
    private readonly collections: Collection[],
    private readonly limits: Limits,
    private readonly atDatabase: AtDatabase,
  ) {}

  seed(name: string | undefined, count: number, seed: number, watch: Watch): Promise<Timed<Imported>> {
    const collection = this.#collection(name);
    const { sample } = collection;
    if (!sample) throw new Error(`Nobody has said what plausible ${collection.name} are: they have no seed.`);
    const progress = (items: number) => watch.progress(items, count);
    return this.#add(collection, formats.ndjson, () => samples(sample, count, seed), {
      ids: 'new',
      again: true,
      ...watch,
      progress,
    });
  }

  async import(name: string | undefined, flags: ImportFlags, watch: Watch): Promise<Timed<Imported>> {
    const collection = this.#collection(name);
    const format = formats[flags.format ?? formatOf(flags.input)];
    const source = await sourceOf(flags.input, watch.signal);
    try {
      const progress = (items: number) => watch.progress(items, source.expected(items));
      const read = ({ table }: Bulk) => format.read(source.chunks, table.columns, this.limits.longestItem);
      return await this.#add(collection, format, read, { ...flags, ...watch, progress });
    } finally {
      await source.close();
    }
  }

  /** @returns also the last id; none when there was nothing */
  export(
    name: string | undefined,
    { output, force = false, format = formatOf(output), after }: ExportFlags,
    { progress, signal }: Watch,
  ): Promise<Timed<{ exported: number; last?: string }>> {
    const { entity } = this.#collection(name);
    if (output) assertFree(output, force);
    return this.atDatabase((database) =>
      timed(async () => {
        const bulk = new Bulk(database, entity);
        const result: { exported: number; last?: string } = { exported: 0 };
        const tell = (exported: number, last: string) => {
          Object.assign(result, { exported, last });
          progress(exported);
        };
        const options = { format: formats[format], after, progress: tell, signal };
        const write = (to: (text: AsyncIterable<string>) => Promise<void>) =>
          database.snapshot((rows) => to(textOf(bulk, rows, options)));
        const writeFile = (handle: FileHandle) => write((text) => handle.writeFile(text));
        if (output) await writeWhole(output, writeFile);
        else if (database.isEmbedded) await writeGathered(process.stdout, writeFile);
        else await write((text) => pipeline(Readable.from(text), process.stdout, { end: false }));
        return result;
      }),
    );
  }

  #add(
    { entity, input }: Collection,
    { isText }: Format,
    read: (bulk: Bulk) => AsyncIterable<Read>,
    options: Omit<ImportOptions, 'check'>,
  ): Promise<Timed<Imported>> {
    return this.atDatabase((database) =>
      timed(async () => {
        const bulk = new Bulk(database, entity);
        const schemas = itemSchemas(bulk.table.columns, input);
        const check = { keep: checker(schemas.keep, { isText }), new: checker(schemas.new, { isText }) };
        return importInto(bulk, read(bulk), { ...options, check });
      }),
    );
  }

  /** The first one when it has no name. */
  #collection(name: string | undefined): Collection {
    const found = this.collections.find((one) => name === undefined || one.name === name);
    if (found) return found;
    throw new Error(`There are no ${name}; there are: ${this.collections.map((one) => one.name).join(', ')}.`);
  }
}

export type Timed<Result> = Result & { ms: number };

async function timed<Result extends object>(work: () => Promise<Result>): Promise<Timed<Result>> {
  const began = performance.now();
  const result = await work();
  return { ...result, ms: Math.round(performance.now() - began) };
}
