import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { type FileHandle, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** @throws Error when the name is taken, unless a file may be replaced */
export function assertFree(file: string, force: boolean): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  // `rename` would replace a device or a link by a file.
  if (found && !found.isFile()) throw new Error(`${file} is no ordinary file: it is left as it is.`);
  if (found && !force) throw new Error(`${file} exists; --force overwrites it.`);
}

/** Writes a file that only its owner can read. It gets its name when it is complete and on the disk. */
export async function writeWhole<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const partial = `${file}.partial-${process.pid}-${randomBytes(4).toString('hex')}`;
  const handle = await open(partial, 'wx', 0o600);
  try {
    const result = await write(handle);
    await handle.sync();
    await rename(partial, file);
    // The new name must be on the disk, too.
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

/**
 * Collects the output for a stream in a temporary file, which is removed in any case: a slow reader must not hold the
 * embedded store, which has one backend.
 */
export async function writeGathered<T>(
  output: NodeJS.WritableStream,
  write: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-'));
  const handle = await open(join(folder, 'output'), 'wx+', 0o600);
  try {
    await rm(folder, { recursive: true });
    const result = await write(handle);
    await pipeline(chunksOf(handle), output, { end: false });
    return result;
  } finally {
    await handle.close();
  }
}

const chunkSize = 262_144;

/** The bytes of a file from its beginning. A stream would close the file when its reader stops early. */
export async function* chunksOf(file: FileHandle, end = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  for (let at = 0; at < end; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(chunkSize, end - at)), 0, undefined, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const lineFeed = 0x0a;

/**
 * The lines of a stream without their ends. Only a line feed ends a line: Node's readline would also split at U+2028,
 * which a text may contain.
 *
 * @param maxLength of a line, in bytes
 * @returns undefined for a line that is longer
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  maxLength = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer | undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  const add = (piece: Buffer) => {
    size += piece.length;
    if (size > maxLength) pieces = [];
    else pieces.push(piece);
  };
  const take = () => {
    const line = size > maxLength ? undefined : Buffer.concat(pieces);
    [pieces, size] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  if (size > 0) yield take();
}
