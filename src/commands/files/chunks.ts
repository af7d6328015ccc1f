import type { FileHandle } from 'node:fs/promises';

const size = 262_144;

/** The bytes of a file from its beginning. A stream would close the file when it is left early. */
export async function* chunksOf(file: FileHandle, end = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  for (let at = 0; at < end; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(size, end - at)), 0, undefined, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
