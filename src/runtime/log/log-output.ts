import { fstatSync, writeFile, writeSync } from 'node:fs';
import { promisify } from 'node:util';

const stdout = 1;
const bundle = { lines: 256, milliseconds: 200 };
/** How many characters may be pending for a reader that stalls; beyond them lines are dropped. */
const maxWaiting = 4 * 1024 * 1024;

/**
 * Writes log lines to standard output in batches: writing each line by itself would cost a sixth of a request. A full
 * disk, or a reader that stalls or has gone, stops neither the service nor its shutdown: lines that cannot be written
 * are dropped and counted, and the count is logged as soon as there is room. (At shutdown pino's own destination
 * retries forever: https://github.com/pinojs/sonic-boom/pull/250.)
 */
export class LogOutput {
  #lines: string[] = [];
  #waiting = 0;
  #dropped = 0;
  /** How many lines have been dropped so far. */
  droppedInAll = 0;
  #writing: Promise<void> | undefined;
  readonly #write = writerOf(stdout);
  readonly #timer = setInterval(() => this.#flush(), bundle.milliseconds).unref();

  constructor() {
    process.once('exit', () => this.#writeLast());
  }

  /** Takes one line, as pino writes it, or several that a worker has bundled. */
  write(lines: string): void {
    if (this.#waiting + lines.length > maxWaiting) {
      this.#drop(lines);
      return;
    }
    this.#waiting += lines.length;
    if (this.#lines.push(lines) >= bundle.lines) this.#flush();
  }

  /** Writes the pending lines, as far as possible within this time. */
  async close(milliseconds: number): Promise<void> {
    clearInterval(this.#timer);
    const giveUpAt = performance.now() + milliseconds;
    const clock = new Promise((done) => setTimeout(done, milliseconds).unref());
    while (this.#waiting > 0 && performance.now() < giveUpAt) {
      this.#flush();
      await Promise.race([this.#writing, clock]);
    }
  }

  #drop(lines: string): void {
    const count = countOf(lines);
    this.#dropped += count;
    this.droppedInAll += count;
  }

  #flush(): void {
    if (this.#writing || this.#lines.length === 0) return;
    const [lines, dropped] = [this.#lines, this.#dropped];
    this.#lines = [];
    this.#dropped = 0;
    const text = lines.join('');
    this.#writing = this.#write(text + noteOf(dropped))
      .catch(() => {
        this.#dropped += dropped;
        this.#drop(text);
      })
      .then(() => {
        this.#waiting -= text.length;
        this.#writing = undefined;
        if (this.#lines.length >= bundle.lines) this.#flush();
      });
  }

  /** For an exit without `close`: tries once. */
  #writeLast(): void {
    if (this.#writing || this.#lines.length === 0) return;
    try {
      writeSync(stdout, this.#lines.join(''));
    } catch {
      // There is nowhere left to report it.
    }
  }
}

function countOf(lines: string): number {
  return lines.split('\n').length - 1;
}

function noteOf(dropped: number): string {
  if (dropped === 0) return '';
  return `${JSON.stringify({ level: 40, time: Date.now(), dropped, msg: 'log lines could not be written' })}\n`;
}

/** Pipes and sockets use Node's stream, which never blocks; files and terminals use the thread pool. */
function writerOf(fd: number): (text: string) => Promise<void> {
  const stat = fstatSync(fd);
  if (!stat.isFIFO() && !stat.isSocket()) return (text) => promisify(writeFile)(fd, text);
  const { stdout } = process;
  // Each write gets its own error.
  stdout.on('error', () => undefined);
  return (text) => new Promise((done, fail) => stdout.write(text, (error) => (error ? fail(error) : done())));
}
