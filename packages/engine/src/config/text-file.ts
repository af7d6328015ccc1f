import { readFileSync } from 'node:fs';

/** By its mark: some editors on Windows write UTF-16. */
const encodingByMark: Record<string, string> = {
  fffe: 'utf-16le',
  feff: 'utf-16be',
};

/**
 * Decodes a text as editors write it. Its lines are separated by `\n`.
 *
 * @throws Error that names the line with a byte of another encoding
 */
export function decodedText(bytes: Buffer) {
  const encoding = encodingByMark[bytes.toString('hex', 0, 2)];
  const text = new TextDecoder(encoding).decode(bytes);
  const plain = text.replace(/\r\n?/g, '\n');
  const [readable = ''] = plain.split(foreign, 1);
  if (readable === plain) return plain;
  const line = readable.split('\n').length;
  throw new Error(`line ${line} is not UTF-8: save the file as UTF-8`);
}

/** What the decoder writes for a wrong byte, and what UTF-16 has. */
const foreign = /[\0\ufffd]/;

/**
 * @param name of the file in messages
 * @throws Error
 */
export function readText(path: string, name = path) {
  try {
    return decodedText(readFileSync(path));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason = code === 'EISDIR' ? 'it is a folder' : message;
    throw new Error(`${name} cannot be read: ${reason}`, { cause });
  }
}
