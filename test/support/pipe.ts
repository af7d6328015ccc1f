import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A pipe as a shell makes one (Node's own are sockets), read only when the test says so. */
export class Pipe {
  /** For the process that prints. */
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

  /** What is there to be read now. */
  read(): string {
    let text = '';
    try {
      for (let bytes = this.#read(); bytes > 0; bytes = this.#read()) text += this.#buffer.toString('utf8', 0, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return text;
  }

  /** The reader goes, while the process may go on printing. */
  leave(): void {
    closeSync(this.#reader);
  }

  #read(): number {
    return readSync(this.#reader, this.#buffer);
  }
}
