import { hash } from 'node:crypto';
import { createReadStream, open as openFile } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { resolve } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { Type } from 'typebox';
import { StoreError } from '../errors.ts';
import type { Collection } from '../module.ts';
import { isDataError } from '../storage/database/errors.ts';
import { checker } from '../storage/input/check.ts';
import type { Int64 } from '../storage/input/int64.ts';
import { pageLimit, pageQueryMembers } from '../storage/input/page.ts';
import { assertFree, writeWhole } from './files.ts';
import { columnsOf, exact, type Format, type Line } from './formats.ts';

/** Observes a transfer, and may end it. */
export interface Watch {
  progress(items: number, total?: number): void;
  refused(line: number, reason: string): void;
  signal: AbortSignal;
}

export interface Imported {
  added: number;
  /** Lines that an earlier import of the same file has added. */
  same: number;
  refused: number;
  /** Why it ended before the end of the file. */
  failure?: unknown;
}

interface ImportOptions extends Watch {
  /** True where a number may be digits in a text. */
  isText?: boolean;
  /** Only checks. */
  dryRun?: boolean;
  /** The name of the file, for an idempotency key of each line; no keys when absent. */
  file?: string | undefined;
}

/** Creations in progress at a time. The service sends them in batches, one after the other. */
const window = 1024;

/** Adds lines through the module's own service, in their order: what was added stays, however this ends. */
export async function importLines(
  { name, input, service }: Collection,
  lines: AsyncIterable<Line>,
  { isText = false, dryRun = false, file, progress, refused, signal }: ImportOptions,
): Promise<Imported> {
  const check = checker(input, { isText });
  const add = 'create' in service ? service.create.bind(service) : service.insert.bind(service);
  const result: Imported = { added: 0, same: 0, refused: 0 };
  let read = 0;

  const refuse = (line: number, reason: string) => {
    result.refused += 1;
    refused(line, reason);
  };
  const create = async (line: number, item: object): Promise<void> => {
    let isReplay = false;
    const once = file === undefined ? undefined : claim(`import ${name}`, [file, line, item], (is) => (isReplay = is));
    try {
      if (!dryRun) await add(item as never, undefined, once);
      result[isReplay ? 'same' : 'added'] += 1;
    } catch (error) {
      if (!isDataError(error)) throw error;
      refuse(line, `the database refuses it: ${(error as Error).message}`);
    }
  };
  const settle = async (creations: Array<Promise<void>>): Promise<void> => {
    const failed = (await Promise.allSettled(creations)).find(({ status }) => status === 'rejected');
    if (failed) result.failure ??= (failed as PromiseRejectedResult).reason;
    progress(read);
  };

  // While one half of the window is being created, the other one is read.
  let creations: Array<Promise<void>> = [];
  let earlier = Promise.resolve();
  try {
    for await (const one of lines) {
      read += 1;
      if ('fault' in one) refuse(one.line, one.fault);
      else {
        try {
          creations.push(create(one.line, check(one.input)));
        } catch (error) {
          if (!(error instanceof StoreError)) throw error;
          refuse(one.line, error.message);
        }
      }
      if (creations.length < window / 2) continue;
      await earlier;
      if (signal.aborted || result.failure) break;
      earlier = settle(creations);
      creations = [];
    }
  } catch (error) {
    if (!signal.aborted) result.failure ??= error;
  }
  await earlier;
  await settle(creations);
  return result;
}

/** An idempotency key: the same line of the same file is added once. */
function claim(operation: string, line: unknown[], settled: (isReplay: boolean) => void) {
  return { keyId: 0, operation, hash: hash('sha256', JSON.stringify(line, exact), 'buffer'), settled };
}

interface ImportFileOptions extends Watch {
  format: Format;
  /** Of an item, in bytes. */
  maxLength: number;
  again: boolean;
  dryRun: boolean;
}

/** @param file standard input when undefined */
export async function importFile(
  file: string | undefined,
  collection: Collection,
  { format, maxLength, again, ...options }: ImportFileOptions,
): Promise<Imported> {
  const { source, size } = await open(file);
  let bytes = 0;
  async function* chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of addAbortSignal(options.signal, source) as AsyncIterable<Buffer>) {
      if (bytes === 0) assertReadable(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }
  const lines = format.read(chunks(), columnsOf(collection.item, collection.input), maxLength);
  try {
    return await importLines(collection, lines, {
      ...options,
      isText: format.isText,
      file: again ? undefined : file === undefined ? '-' : resolve(file),
      progress: (read) => options.progress(read, size && Math.round((read * size) / bytes)),
    });
  } finally {
    source.destroy();
  }
}

async function open(file: string | undefined): Promise<{ source: Readable; size?: number }> {
  if (file === undefined) {
    if (process.stdin.isTTY) throw new Error('There is no input: give --input FILE, or a pipe.');
    return { source: process.stdin };
  }
  const found = await stat(file);
  // The read of a named pipe as a file cannot be aborted.
  if (found.isFIFO()) return { source: new Socket({ fd: await promisify(openFile)(file, 'r'), writable: false }) };
  return { source: createReadStream(file), size: found.size };
}

/** @throws Error for a compressed file and for UTF-16, of which each line would be refused */
function assertReadable(beginning: Buffer): void {
  const mark = beginning.toString('hex', 0, 2);
  if (mark === '1f8b' || mark === '28b5') {
    throw new Error('The file is compressed: `gzip -dc FILE | animal-store import` or `zstd -dc ...` reads it.');
  }
  if (mark === 'fffe' || mark === 'feff') {
    throw new Error('The file is UTF-16: `iconv -f UTF-16 -t UTF-8 FILE | animal-store import` reads it.');
  }
}

interface ExportOptions extends Pick<Watch, 'progress' | 'signal'> {
  format: Format;
  /** Only items with a greater id. */
  after?: Int64 | undefined;
  force?: boolean | undefined;
}

export interface Exported {
  exported: number;
  /** The last id; absent where there was no item. */
  last?: string;
}

/** @param file standard output when undefined */
export async function exportTo(
  file: string | undefined,
  collection: Collection,
  { force = false, ...options }: ExportOptions,
): Promise<Exported> {
  if (file) assertFree(file, force);
  const result: Exported = { exported: 0 };
  const text = textOf(collection, options, result);
  if (file) await writeWhole(file, (handle) => handle.writeFile(text));
  else await pipeline(Readable.from(text), process.stdout, { end: false });
  return result;
}

const pageOf = checker(Type.Object(pageQueryMembers('item')));

/** Reads page by page, each in a statement of its own: a slow reader holds no transaction. */
async function* textOf(
  { item, service }: Collection,
  { format, after, progress, signal }: ExportOptions,
  result: Exported,
): AsyncGenerator<string> {
  const columns = columnsOf(item);
  const next = (position?: Int64) => service.list(pageOf({ limit: pageLimit.max, after: position }));
  yield format.head(columns);
  for (let page = await next(after); ; ) {
    signal.throwIfAborted();
    const { items, hasNext } = page;
    const last = items.at(-1);
    const following = hasNext ? next(last?.id) : undefined;
    // It is awaited after this page was written.
    following?.catch(() => undefined);
    if (last) {
      yield format.write(columns, items);
      result.exported += items.length;
      result.last = `${last.id}`;
      progress(result.exported);
    }
    if (!following) return;
    page = await following;
  }
}
