import { fstatSync, writeFile, writeSync } from 'node:fs';

const stdout = 1;
/** Milliseconds between two writes. */
const interval = 200;
/** Maximum number of pending characters; further lines are dropped. */
const maxPending = 4 * 1024 * 1024;

/**
 * Writes log lines to standard output in batches: one write per line would cost a sixth of a request. A full disk or a
 * stalled or closed reader stops neither the service nor its shutdown: lines that cannot be written are dropped and
 * counted, and the count is logged later. (pino's own destination retries forever at shutdown:
 * https://github.com/pinojs/sonic-boom/pull/250.)
 */
export class LogOutput {
  /** Number of lines dropped since the start. */
  dropped = 0;
  /** Number of dropped lines that the log has reported. */
  #reported = 0;
  #pending = '';
  /** Number of characters being written. */
  #writing = 0;
  readonly #write = writerOf(stdout);

  /** @param format applied to lines when they are added */
  constructor(private readonly format = (lines: string) => lines) {
    setInterval(() => this.#flush(), interval).unref();
    process.once('exit', () => this.#writeLast());
  }

  /** Adds one line of pino's, or several of a worker's. */
  write(given: string): void {
    const lines = this.format(given);
    if (this.#pending.length + this.#writing + lines.length > maxPending) this.dropped += countOf(lines);
    else this.#pending += lines;
  }

  /** Writes the pending lines, as far as possible within this time. */
  async flush(milliseconds: number): Promise<void> {
    const giveUpAt = performance.now() + milliseconds;
    while (this.#pending.length + this.#writing > 0 && performance.now() < giveUpAt) {
      this.#flush();
      await new Promise((done) => setTimeout(done, 5));
    }
  }

  #flush(): void {
    if (this.#writing > 0 || this.#pending === '') return;
    const [lines, dropped] = [this.#pending, this.dropped];
    this.#pending = '';
    this.#writing = lines.length;
    this.#write(lines + this.#noteOf(dropped), (error) => {
      this.#writing = 0;
      if (error) this.dropped += countOf(lines);
      else this.#reported = dropped;
    });
  }

  #noteOf(dropped: number): string {
    if (dropped === this.#reported) return '';
    const note = { level: 40, time: Date.now(), dropped: dropped - this.#reported };
    return this.format(`${JSON.stringify({ ...note, msg: 'log lines could not be written' })}\n`);
  }

  /** Tries once, for an exit without `flush`. */
  #writeLast(): void {
    if (this.#writing > 0 || this.#pending === '') return;
    try {
      writeSync(stdout, this.#pending);
    } catch {} // The error cannot be reported anywhere.
  }
}

function countOf(lines: string): number {
  return lines.split('\n').length - 1;
}

type Write = (text: string, done: (error?: Error | null) => void) => void;

/** Pipes and sockets use Node's stream, which never blocks; files and terminals use the thread pool. */
function writerOf(fd: number): Write {
  const stat = fstatSync(fd);
  if (!stat.isFIFO() && !stat.isSocket()) return (text, done) => writeFile(fd, text, done);
  // The callback of each write gets its error.
  process.stdout.on('error', () => undefined);
  return (text, done) => process.stdout.write(text, done);
}
