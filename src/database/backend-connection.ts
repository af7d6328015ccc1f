import type { Socket } from 'node:net';

const headerSize = { first: 8, other: 5 };

/** One connection's bytes, as the messages of PostgreSQL's protocol (its manual, chapter 55). */
export class BackendConnection {
  readonly socket: Socket;
  /** True between the first message of a query and its end: a Sync, or a Query or FunctionCall of its own. */
  isAmidQuery = false;
  #isStarted = false;
  #chunks: Buffer[] = [];
  #received = 0;
  /** How many bytes must be there before there is anything to take. */
  #needed = headerSize.first;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
  }

  /** All whole messages that have come, together; the one that begins a session, alone. */
  take(): Uint8Array | undefined {
    if (this.#received < this.#needed) return undefined;
    const bytes = Buffer.concat(this.#chunks);
    const end = this.#isStarted ? this.#endOfMessages(bytes) : this.#endOfStartup(bytes);
    this.#chunks = [bytes.subarray(end)];
    this.#received -= end;
    return end > 0 ? new Uint8Array(bytes.subarray(0, end)) : undefined;
  }

  write(data: Uint8Array): void {
    // A copy: the engine's memory will have changed by the time that a slow reader takes it.
    if (this.socket.writable) this.socket.write(Buffer.from(data));
  }

  #endOfStartup(bytes: Buffer): number {
    const [length, version] = [bytes.readUInt32BE(0), bytes.readUInt16BE(4)];
    // Something else in its place asks to cancel, which has no answer, or to encrypt, which nobody does on a Unix socket.
    if (version !== 3) {
      this.socket.end();
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
      this.#needed = rest < headerSize.other ? headerSize.other : 1 + bytes.readUInt32BE(end + 1);
      if (rest < this.#needed) return end;
      const type = String.fromCharCode(bytes[end] as number);
      if (type === 'X') {
        this.socket.end();
        return end;
      }
      if (!'dcf'.includes(type)) this.isAmidQuery = !'SQF'.includes(type);
    }
  }
}
