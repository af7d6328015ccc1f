import { fstatSync, writeFile, writeSync } from 'node:fs';

const stdout = 1;
/** Milliseconds between two writes. */
const writeInterval = 200;
/** Maximum number of pending bytes; further lines are dropped. */
const maxPending = 4 * 1024 * 1024;

/**
 * Writes log lines to standard output in batches: one write per line would cost
 * a sixth of a request. A full disk or a stalled or closed reader stops neither
 * the service nor its shutdown: lines that cannot be written are dropped and
 * counted, and the count is logged later. (pino's own destination retries
 * forever at shutdown: https://github.com/pinojs/sonic-boom/pull/250.)
 */
export class LogOutput {
  /** Number of lines dropped since the start. */
  dropped = 0;
  /** Number of dropped lines that the log has reported. */
  #reported = 0;
  /**
   * The pending bytes. Lines are copied at once, because pending strings would
   * double the time of garbage collection and the size of the young generation.
   */
  readonly #pending = Buffer.allocUnsafeSlow(maxPending);
  #length = 0;
  #isWriting = false;
  readonly #write = writerOf(stdout);

  /** @param format applied to lines when they are added */
  constructor(private readonly format = (lines: string) => lines) {
    setInterval(() => this.#startWrite(), writeInterval).unref();
    process.once('exit', () => this.#writeLast());
  }

  /** Adds one line of pino's, or several of a worker's. */
  write(given: string) {
    const lines = this.format(given);
    const left = maxPending - this.#length;
    // A character has three bytes at most.
    const mayFit = 3 * lines.length <= left || Buffer.byteLength(lines) <= left;
    if (!mayFit) {
      this.dropped += countLines(lines);
      return;
    }
    this.#length += this.#pending.write(lines, this.#length);
  }

  /** Writes the pending lines, as far as possible within this time. */
  async flush(milliseconds: number) {
    const giveUpAt = performance.now() + milliseconds;
    while (this.#length > 0 || this.#isWriting) {
      if (performance.now() >= giveUpAt) return;
      this.#startWrite();
      await new Promise((done) => setTimeout(done, 5));
    }
  }

  get #pendingBytes() {
    return this.#pending.subarray(0, this.#length);
  }

  #startWrite() {
    if (this.#isWriting || this.#length === 0) return;
    const droppedBefore = this.dropped;
    const length = this.#length;
    const note = Buffer.from(this.#note());
    const bytes = Buffer.concat([this.#pendingBytes, note]);
    this.#length = 0;
    this.#isWriting = true;
    this.#write(bytes, (error) => {
      this.#isWriting = false;
      if (error) this.dropped += countLines(bytes.toString('utf8', 0, length));
      else this.#reported = droppedBefore;
    });
  }

  /** A line about those dropped since the last one, if any. */
  #note() {
    const dropped = this.dropped - this.#reported;
    if (dropped === 0) return '';
    const line = {
      level: 40,
      time: Date.now(),
      dropped,
      msg: 'log lines could not be written',
    };
    return this.format(`${JSON.stringify(line)}\n`);
  }

  /** Tries once, for an exit without `flush`. */
  #writeLast() {
    if (this.#isWriting || this.#length === 0) return;
    try {
      writeSync(stdout, this.#pendingBytes);
    } catch {} // The error cannot be reported anywhere.
  }
}

function countLines(lines: string) {
  return lines.split('\n').length - 1;
}

type WriteBytes = (bytes: Buffer, done: (error?: Error | null) => void) => void;

/**
 * Pipes and sockets use Node's stream, which never blocks; files and terminals
 * use the thread pool.
 */
function writerOf(fd: number): WriteBytes {
  const stat = fstatSync(fd);
  if (!stat.isFIFO() && !stat.isSocket())
    return (bytes, done) => writeFile(fd, bytes, done);
  // The callback of each write gets its error.
  process.stdout.on('error', () => undefined);
  return (bytes, done) => process.stdout.write(bytes, done);
}
