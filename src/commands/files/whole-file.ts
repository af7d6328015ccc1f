import { lstatSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { chunksOf } from './chunks.ts';

/** @throws Error when the name is taken, unless a file may be replaced */
export function assertFree(file: string, force: boolean): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  // A device or a link would be replaced by a file.
  if (found && !found.isFile()) throw new Error(`${file} is no ordinary file: it is left as it is.`);
  if (found && !force) throw new Error(`${file} exists; --force overwrites it.`);
}

/** Writes a file for its owner alone, which appears when it is whole and on the disk. */
export async function writeWhole<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const partial = `${file}.partial`;
  // A run that was killed has left it.
  await rm(partial, { force: true });
  const handle = await open(partial, 'wx', 0o600);
  try {
    const result = await write(handle);
    await handle.sync();
    if (!(await isNamed(handle, partial))) throw new Error(`Another run has begun to write ${file}.`);
    await rename(partial, file);
    await syncFolder(dirname(resolve(file)));
    return result;
  } catch (error) {
    if (await isNamed(handle, partial)) await rm(partial);
    throw error;
  } finally {
    await handle.close();
  }
}

/** Whether the name is still that of this file: a later run to the same place takes it. */
async function isNamed(file: FileHandle, name: string): Promise<boolean> {
  const [own, named] = await Promise.all([file.stat(), stat(name).catch(() => undefined)]);
  return own.ino === named?.ino;
}

/** So that the new name is on the disk, too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/**
 * Gathers in a file what goes to a stream, and nothing of it is left, however this ends: whoever reads slowly must not
 * hold the embedded store, which has one backend.
 */
export async function writeGathered<T>(
  output: NodeJS.WritableStream,
  write: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const spool = join(tmpdir(), `animal-store-${process.pid}`);
  const handle = await open(spool, 'wx+', 0o600);
  try {
    await rm(spool);
    const result = await write(handle);
    await pipeline(chunksOf(handle), output, { end: false });
    return result;
  } finally {
    await handle.close();
  }
}
