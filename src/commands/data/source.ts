import { open as openFile } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { chunksOf } from '../files/chunks.ts';

/** Waits for whoever writes to it. */
const opened = (pipe: string) => promisify(openFile)(pipe, 'r');

/** Where items are read from. */
export interface Source {
  chunks: AsyncIterable<Buffer>;
  /** How many items there may be, when so many have been read; undefined when nobody knows. */
  expected(items: number): number | undefined;
  close(): Promise<void>;
}

/** @param file standard input when undefined @throws Error when there is nothing to read */
export async function sourceOf(file: string | undefined, signal: AbortSignal): Promise<Source> {
  if (file === undefined && process.stdin.isTTY)
    throw new Error('There is nothing to read: give --input FILE, or a pipe.');
  if (file === undefined) return streamed(process.stdin, signal);
  // A read of a pipe as a file cannot be given up.
  if ((await stat(file)).isFIFO()) return streamed(new Socket({ fd: await opened(file), writable: false }), signal);
  const handle = await open(file);
  const { size } = await handle.stat();
  let at = 0;
  async function* chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of chunksOf(handle)) {
      at += chunk.length;
      yield chunk;
    }
  }
  const expected = (items: number) => Math.round((items * size) / at);
  return { chunks: readable(chunks()), expected, close: () => handle.close() };
}

/** A pipe, which may be silent for ever. */
function streamed(stream: Readable, signal: AbortSignal): Source {
  const close = async () => void stream.destroy();
  return { chunks: readable(addAbortSignal(signal, stream)), expected: () => undefined, close };
}

/** What begins like this is another file than was meant, and each of its lines would be refused. */
const mistaken: Array<[beginning: number[], what: string]> = [
  [[0x1f, 0x8b], 'compressed: `gzip -dc FILE | animal-store import` reads it'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed: `zstd -dc FILE | animal-store import` reads it'],
  [[0xff, 0xfe], 'UTF-16: `iconv -f UTF-16 -t UTF-8 FILE | animal-store import` reads it'],
  [[0xfe, 0xff], 'UTF-16: `iconv -f UTF-16 -t UTF-8 FILE | animal-store import` reads it'],
];

/** @throws Error for a file that is no text in UTF-8 */
async function* readable(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of chunks) {
    const found = isFirst && mistaken.find(([beginning]) => chunk.indexOf(Buffer.from(beginning)) === 0);
    if (found) throw new Error(`The file is ${found[1]}.`);
    isFirst = false;
    yield chunk;
  }
}
