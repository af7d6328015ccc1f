import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A pipe like those of a shell (Node's own are sockets). It is read only when
 * the test calls `read`.
 */
export class Pipe {
  /** The descriptor for the process that prints. */
  readonly writer: number;
  readonly #reader: number;
  readonly #buffer = Buffer.alloc(65_536);

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'animal-store-test-'));
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    this.#reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writer = openSync(path, constants.O_WRONLY);
    rmSync(folder, { recursive: true });
  }

  /** Reads the bytes that are available now. */
  read(): string {
    let text = '';
    try {
      for (let bytes = this.#read(); bytes > 0; bytes = this.#read())
        text += this.#buffer.toString('utf8', 0, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return text;
  }

  /** Closes the reader while the process may go on printing. */
  leave(): void {
    closeSync(this.#reader);
  }

  #read(): number {
    return readSync(this.#reader, this.#buffer);
  }
}
