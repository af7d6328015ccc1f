import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { backup, restore } from '../backup/backup.ts';
import type { Contents, OnRows } from '../backup/tables.ts';
import type { DatabaseOptions, Model } from '../database/database.ts';
import { assertFree, linesOf, writeWhole } from './files.ts';

/** Writes the embedded store to a file, which gets its name when it is complete. @param file `-` for standard output */
export async function backupTo(
  file: string,
  options: DatabaseOptions,
  model: Model,
  { force = false, progress, signal }: { force?: boolean; progress: OnRows; signal: AbortSignal },
): Promise<{ bytes: number; tables: Contents[] }> {
  if (file !== '-') {
    assertFree(file, force);
    const aborted = once(signal, 'abort').then(() => signal.throwIfAborted());
    return writeWhole(file, async (handle) => {
      const tables = await Promise.race([backup((text) => handle.appendFile(text), options, model, progress), aborted]);
      return { bytes: (await handle.stat()).size, tables: tables as Contents[] };
    });
  }
  // Standard output gets a copy, so that a slow reader does not block the store's only backend.
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-'));
  try {
    const copy = join(folder, 'backup');
    const result = await backupTo(copy, options, model, { progress, signal });
    await pipeline(createReadStream(copy), process.stdout, { end: false, signal });
    return result;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Restores a file of `backupTo`. */
export function restoreFrom(path: string, options: DatabaseOptions, model: Model, progress: OnRows) {
  return restore({ path, lines: () => linesOf(createReadStream(path)) }, options, model, progress);
}
