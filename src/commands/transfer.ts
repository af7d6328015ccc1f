import { hash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { exact } from '@animal-store/exact-json';
import { Type } from 'typebox';
import type { Collection } from '../api/module.ts';
import { assertFree, writeWhole } from '../backup/files.ts';
import { Call } from '../call.ts';
import { isDataError } from '../database/postgres-errors.ts';
import { StoreError } from '../errors.ts';
import type { Int64 } from '../validation/int64.ts';
import { pageLimit, pageQueryMembers } from '../validation/page.ts';
import { validator } from '../validation/validator.ts';
import { type Format, fieldsOf, type Line } from './formats.ts';

/** Observes a transfer, and may abort it. */
export interface TransferObserver {
  progress(items: number): void;
  refused(line: number, reason: string): void;
  signal: AbortSignal;
}

export interface Imported {
  added: number;
  /** Number of lines that an earlier import of the same file added. */
  same: number;
  refused: number;
  /** The error that ended it before the end of the file. */
  failure?: unknown;
}

interface ImportOptions extends TransferObserver {
  /** True when numbers may be texts of digits. */
  isLenient?: boolean;
  dryRun?: boolean;
  /**
   * The file's name, from which each line's idempotency key is derived; no keys
   * when absent.
   */
  file?: string | undefined;
}

/** Maximum number of concurrent creations. The service batches them. */
const window = 1024;

/**
 * Adds lines in order through the module's service. Added items stay, however
 * this ends.
 */
export async function importLines(
  { name, input, service }: Collection,
  lines: AsyncIterable<Line>,
  {
    isLenient = false,
    dryRun = false,
    file,
    progress,
    refused,
    signal,
  }: ImportOptions,
): Promise<Imported> {
  const check = validator(input, { isLenient });
  const result: Imported = { added: 0, same: 0, refused: 0 };
  const refuse = (line: number, reason: string) => {
    result.refused += 1;
    refused(line, reason);
  };
  const create = async ({ line, ...one }: Line): Promise<void> => {
    if ('fault' in one) return refuse(line, one.fault);
    try {
      const item = check(one.input);
      const call = new Call();
      // Adds the same line of the same file only once.
      if (file)
        call.claim = {
          keyId: 0,
          operation: `import ${name}`,
          hash: hashOf([file, line, item]),
        };
      if (!dryRun) await service.create(item as never, call);
      result[call.isReplay ? 'same' : 'added'] += 1;
    } catch (error) {
      if (isDataError(error))
        refuse(line, `the database refuses it: ${(error as Error).message}`);
      else if (
        error instanceof StoreError &&
        /BAD_USER_INPUT|CONFLICT/.test(error.code)
      )
        refuse(line, error.message);
      else result.failure ??= error;
    }
  };

  // Reads one half of the window while the half before is being created.
  let creations: Array<Promise<void>> = [];
  let earlier: Promise<unknown> = Promise.resolve();
  try {
    for await (const one of lines) {
      creations.push(create(one));
      if (creations.length < window / 2) continue;
      await earlier;
      if (signal.aborted || result.failure) break;
      earlier = Promise.all(creations);
      creations = [];
      progress(result.added + result.same + result.refused);
    }
  } catch (error) {
    if (!signal.aborted) result.failure ??= error;
  }
  await Promise.all([earlier, ...creations]);
  return result;
}

const hashOf = (line: unknown[]) =>
  hash('sha256', JSON.stringify(line, exact), 'buffer');

interface ImportFileOptions extends TransferObserver {
  format: Format;
  /** Maximum size of an item, in bytes. */
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
  if (!file && process.stdin.isTTY)
    throw new Error('There is no input: give --input FILE, or a pipe.');
  const source = file ? (await open(file)).createReadStream() : process.stdin;
  addAbortSignal(options.signal, source);
  const lines = format.read(
    source,
    fieldsOf(collection.item, collection.input),
    maxLength,
  );
  const name = again ? undefined : file ? resolve(file) : '-';
  try {
    return await importLines(collection, lines, {
      ...options,
      isLenient: format.hasOnlyTexts,
      file: name,
    });
  } finally {
    source.destroy();
  }
}

interface ExportOptions extends Pick<TransferObserver, 'progress' | 'signal'> {
  format: Format;
  /** Only items with a greater id. */
  after?: Int64 | undefined;
  force?: boolean | undefined;
}

interface Exported {
  exported: number;
  /** The last id; absent when there was no item. */
  last?: string;
}

/** @param file standard output when undefined */
export async function exportTo(
  file: string | undefined,
  { item, service }: Collection,
  { format, after, force = false, progress, signal }: ExportOptions,
): Promise<Exported> {
  if (file) assertFree(file, force);
  const columns = fieldsOf(item);
  const result: Exported = { exported: 0 };
  /**
   * Reads each page in a separate statement, so that a slow reader holds no
   * transaction open.
   */
  async function* text(): AsyncGenerator<string> {
    yield format.head(columns);
    for (let position = after; ; ) {
      const { items, hasNext } = await service.list(
        pageOf({ limit: pageLimit.max, after: position }),
      );
      signal.throwIfAborted();
      const last = items.at(-1);
      if (last) {
        yield format.write(columns, items);
        result.exported += items.length;
        result.last = `${last.id}`;
        progress(result.exported);
      }
      if (!hasNext) return;
      position = last?.id;
    }
  }
  if (file) await writeWhole(file, (handle) => handle.writeFile(text()));
  else {
    const output = Readable.from(text());
    await pipeline(
      process.stdout.isTTY ? output.map(printablePage) : output,
      process.stdout,
      { end: false },
    );
  }
  return result;
}

/** Replaces what a terminal would interpret. JSON escapes only some of it. */
const printablePage = (text: string) =>
  text.replace(/\r(?!\n)|[^\P{Cc}\r\n]/gu, '?');

const pageOf = validator(Type.Object(pageQueryMembers('item')));
