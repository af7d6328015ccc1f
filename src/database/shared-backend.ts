import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';

/**
 * Serves PGlite, which is one backend, to many connections. `@electric-sql/pglite-socket` lets the messages of two
 * connections mix when one of them comes in pieces, and hangs for good once the engine throws
 * (https://github.com/electric-sql/pglite/issues/1046). Here a connection has the backend to itself from the first
 * message of a query to its end, and from the begin of a transaction to its end.
 *
 * An engine that throws is an unhandled rejection: it ends the thread, and nothing is answered by a broken one.
 */
export class SharedBackend {
  readonly #engine: PGlite;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  /** The connections with something to say, in the order in which they came. */
  #waiting: Connection[] = [];
  /** Whoever has begun something that others must not cut into. */
  #holder: Connection | undefined;
  #isBusy = false;

  constructor(engine: PGlite) {
    this.#engine = engine;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(path, resolve);
    });
  }

  /** Nothing reaches the engine any more. */
  close(): void {
    this.#server.close();
    for (const { socket } of this.#connections) socket.destroy();
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket);
    this.#connections.add(connection);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      connection.receive(chunk);
      this.#enqueue(connection);
    });
    socket.on('close', () => {
      this.#connections.delete(connection);
      if (this.#holder === connection) this.#enqueue(connection);
    });
  }

  #enqueue(connection: Connection): void {
    if (!this.#waiting.includes(connection)) this.#waiting.push(connection);
    if (!this.#isBusy) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#next(); next; next = this.#next()) {
      if (next.socket.destroyed) await this.#abandon(next);
      else await this.#serve(next);
    }
    this.#isBusy = false;
  }

  #next(): Connection | undefined {
    if (!this.#server.listening) return undefined;
    const place = this.#holder ? this.#waiting.indexOf(this.#holder) : 0;
    return place < 0 ? undefined : this.#waiting.splice(place, 1)[0];
  }

  async #serve(connection: Connection): Promise<void> {
    for (let bytes = connection.take(); bytes; bytes = connection.take()) {
      await this.#engine.execProtocolRawStream(bytes, { onRawData: (data) => connection.write(data) });
    }
    this.#holder = connection.isAmidQuery || this.#engine.isInTransaction() ? connection : undefined;
  }

  /** Ends what a connection that has gone had begun. */
  async #abandon(connection: Connection): Promise<void> {
    if (this.#holder !== connection) return;
    await this.#engine.execProtocolRawStream(sync, { onRawData: () => undefined });
    if (this.#engine.isInTransaction()) await this.#engine.exec('rollback');
    this.#holder = undefined;
  }
}

const sync = Uint8Array.of(0x53, 0, 0, 0, 4);
const headerSize = { first: 8, other: 5 };

/** One connection's bytes, as the messages of PostgreSQL's protocol (its manual, chapter 55). */
class Connection {
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
