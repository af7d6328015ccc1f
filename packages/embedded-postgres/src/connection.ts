import type { Socket } from 'node:net';
import { isCopyIn } from './copy-in.ts';

const headerSize = { first: 8, other: 5 };
// A startup message has its version and at least the end of its parameters.
const shortest = { first: 9, other: 4 };
// The types of COPY data are excluded.
const types = 'BCDEFHPQSX';

/** Splits the bytes of one connection into messages of PostgreSQL's protocol (its manual, chapter 55). */
export class BackendConnection {
  readonly socket: Socket;
  /** True between the first message of a query and its end: a Sync, or a single Query or FunctionCall. */
  isAmidQuery = false;
  /** True when the client has ended the session, or sent something that would crash the engine. */
  isOver = false;
  #isStarted = false;
  #chunks: Buffer[] = [];
  #received = 0;
  /** How many bytes must have arrived before there is anything to take. */
  #needed = headerSize.first;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
  }

  /** Takes all complete messages together; the startup message is taken alone. */
  take(): Uint8Array | undefined {
    if (this.isOver || this.#received < this.#needed) return undefined;
    const bytes = Buffer.concat(this.#chunks);
    const end = this.#isStarted ? this.#endOfMessages(bytes) : this.#endOfStartup(bytes);
    this.#chunks = [bytes.subarray(end)];
    this.#received -= end;
    return end > 0 ? new Uint8Array(bytes.subarray(0, end)) : undefined;
  }

  write(data: Uint8Array): void {
    // Copied, because the engine's memory will have changed by the time a slow reader takes the data.
    if (this.socket.writable) this.socket.write(Buffer.from(data));
  }

  #endOfStartup(bytes: Buffer): number {
    const [length, version] = [bytes.readUInt32BE(0), bytes.readUInt16BE(4)];
    // Any other first message is a cancel request, which has no answer, or an encryption request, which no client sends
    // on a Unix socket.
    if (version !== 3 || length < shortest.first) {
      this.isOver = true;
      return 0;
    }
    this.#needed = length;
    if (bytes.length < length) return 0;
    this.#isStarted = true;
    this.#needed = headerSize.other;
    return length;
  }

  #endOfMessages(bytes: Buffer): number {
    for (let end = 0; ; end += this.#needed) {
      const rest = bytes.length - end;
      const length = rest < headerSize.other ? shortest.other : bytes.readUInt32BE(end + 1);
      this.#needed = Math.max(headerSize.other, 1 + length);
      const type = String.fromCharCode(bytes[end] ?? 0);
      if (rest > 0 && (!types.includes(type) || length < shortest.other)) this.isOver = true;
      if (this.isOver || rest < this.#needed) return end;
      const body = bytes.subarray(end + headerSize.other, end + this.#needed);
      this.isOver = type === 'X' || ('QP'.includes(type) && isCopyIn(sqlIn(type, body)));
      if (this.isOver) return end;
      this.isAmidQuery = !'SQF'.includes(type);
    }
  }
}

/** The SQL of a Query or a Parse, which has a name before it. */
function sqlIn(type: string, body: Buffer): string {
  const [first = '', second = ''] = body.toString('latin1').split('\0', 2);
  return type === 'P' ? second : first;
}
