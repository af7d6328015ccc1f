import { lstatSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { DatabaseOptions } from '../database/options.ts';
import { chunksOf } from './chunks.ts';
import type { Progress, Tally } from './rows.ts';
import { ScriptWriter } from './script.ts';
import { writeSnapshot } from './snapshot.ts';
import { assertStoreIn, inTransaction, withStore } from './store.ts';

export interface Backup {
  bytes: number;
  tables: Tally[];
  /** How long (ms) the store was held: requests waited. */
  heldMs: number;
}

/** Backs the embedded store up to a file, which appears when it is whole. @throws Error when the name is taken */
export async function backupTo(
  file: string,
  options: DatabaseOptions,
  force: boolean,
  progress: Progress,
): Promise<Backup> {
  const found = lstatSync(file, { throwIfNoEntry: false });
  // A device or a link would be replaced by a file.
  if (found && !found.isFile()) throw new Error(`${file} is no ordinary file: it is left as it is.`);
  if (found && !force) throw new Error(`${file} exists; --force overwrites it.`);
  assertStoreIn(options.dataDir);
  const partial = `${file}.partial`;
  // A run that was killed has left it.
  await rm(partial, { force: true });
  const handle = await open(partial, 'wx', 0o600);
  try {
    const backup = await write(handle, options, progress);
    await handle.sync();
    if (!(await isNamed(handle, partial))) throw new Error(`Another backup to ${file} has begun.`);
    await rename(partial, file);
    await syncFolder(dirname(resolve(file)));
    return backup;
  } catch (error) {
    if (await isNamed(handle, partial)) await rm(partial);
    throw error;
  } finally {
    await handle.close();
  }
}

/** Whether the name is still that of this file: a later backup to the same place takes it. */
async function isNamed(file: FileHandle, name: string): Promise<boolean> {
  const [own, named] = await Promise.all([file.stat(), stat(name).catch(() => undefined)]);
  return own.ino === named?.ino;
}

/**
 * Backs the embedded store up to a stream. It is gathered in a file first: whoever reads slowly must not hold the store.
 */
export async function backupToStream(
  output: NodeJS.WritableStream,
  options: DatabaseOptions,
  progress: Progress,
): Promise<Backup> {
  assertStoreIn(options.dataDir);
  const spool = join(tmpdir(), `animal-store-backup-${process.pid}`);
  const handle = await open(spool, 'wx+', 0o600);
  try {
    // Nothing is left of it, however this ends.
    await rm(spool);
    const backup = await write(handle, options, progress);
    await pipeline(chunksOf(handle), output, { end: false });
    return backup;
  } finally {
    await handle.close();
  }
}

/** The script is complete only once the transaction has been: until then the engine may say that it has failed. */
function write(handle: FileHandle, options: DatabaseOptions, progress: Progress): Promise<Backup> {
  const script = new ScriptWriter(handle);
  const even = true;
  return withStore(
    options,
    async ({ session }) => {
      let began = 0;
      const tables = await inTransaction(session, 'read only', () => {
        began = performance.now();
        return writeSnapshot(session, script, progress);
      });
      const heldMs = Math.round(performance.now() - began);
      await script.complete(tables);
      return { bytes: script.bytes, tables, heldMs };
    },
    even,
  );
}

/** So that the new name is on the disk, too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}
