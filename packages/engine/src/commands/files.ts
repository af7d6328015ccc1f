import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** @throws Error when the file exists, unless `force` allows overwriting it */
export function assertFree(file: string, force: boolean) {
  const found = lstatSync(file, { throwIfNoEntry: false });
  // `rename` would replace a device or a link with a file.
  if (found && !found.isFile())
    throw new Error(`${file} is not a regular file; it was not overwritten.`);
  if (found && !force)
    throw new Error(`${file} exists; --force overwrites it.`);
}

/**
 * Writes a file that only its owner can read. It gets its name when it is
 * complete and synced to disk.
 */
export async function writeWhole<T>(
  file: string,
  write: (handle: FileHandle) => Promise<T>,
) {
  const partial = `${file}.partial-${process.pid}-${randomBytes(4).toString('hex')}`;
  const handle = await open(partial, 'wx', 0o600);
  try {
    const result = await write(handle);
    await handle.sync();
    await rename(partial, file);
    // Syncs the new name, too.
    const folder = await open(dirname(resolve(file)), 'r');
    await folder.sync().finally(() => folder.close());
    return result;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

const lineFeed = 0x0a;

/**
 * Splits a stream into lines at line feeds only. Node's readline would also
 * split at U+2028, which a text may contain.
 *
 * @param maxLength maximum length of a line, in bytes
 * @returns undefined for a longer line
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  maxLength = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer | undefined> {
  let rest = Buffer.alloc(0);
  const fitting = (line: Buffer) =>
    line.length > maxLength ? undefined : line;
  for await (const chunk of chunks) {
    let start = 0;
    let end = chunk.indexOf(lineFeed);
    while (end >= 0) {
      const piece = chunk.subarray(start, end);
      yield fitting(rest.length > 0 ? Buffer.concat([rest, piece]) : piece);
      rest = Buffer.alloc(0);
      start = end + 1;
      end = chunk.indexOf(lineFeed, start);
    }
    // Keeps one byte more than the maximum, to detect a line that is too long.
    const begun = Buffer.concat([rest, chunk.subarray(start)]);
    rest = begun.subarray(0, maxLength + 1);
  }
  if (rest.length > 0) yield fitting(rest);
}
