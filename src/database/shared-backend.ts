import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { BackendConnection } from './backend-connection.ts';

/**
 * Serves PGlite, which is one backend, to many connections. `@electric-sql/pglite-socket` lets the messages of two
 * connections mix when one of them comes in pieces, and hangs for good once the engine throws
 * (https://github.com/electric-sql/pglite/issues/1046). Here a connection has the backend to itself from the first
 * message of a query to its end, and from the begin of a transaction to its end.
 *
 * An engine that throws, or that does not answer to the end, is an unhandled rejection: it ends the thread, and with it
 * the service, rather than that nothing works any more.
 */
export class SharedBackend {
  readonly #engine: PGlite;
  readonly #server: Server;
  readonly #connections = new Set<BackendConnection>();
  /** The connections with something to say, in the order in which they came. */
  #waiting: BackendConnection[] = [];
  /** Whoever has begun something that others must not cut into. */
  #holder: BackendConnection | undefined;
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
    const connection = new BackendConnection(socket);
    this.#connections.add(connection);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      connection.receive(chunk);
      this.#enqueue(connection);
    });
    socket.on('close', () => {
      this.#connections.delete(connection);
      this.#enqueue(connection);
    });
  }

  #enqueue(connection: BackendConnection): void {
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

  #next(): BackendConnection | undefined {
    if (!this.#server.listening) return undefined;
    const place = this.#holder ? this.#waiting.indexOf(this.#holder) : 0;
    return place < 0 ? undefined : this.#waiting.splice(place, 1)[0];
  }

  async #serve(connection: BackendConnection): Promise<void> {
    for (let bytes = connection.take(); bytes; bytes = connection.take()) {
      let end = Buffer.alloc(0);
      await this.#engine.execProtocolRawStream(bytes, {
        onRawData: (data) => {
          end = Buffer.concat([end, data.subarray(-readyForQuery)]).subarray(-readyForQuery);
          connection.write(data);
        },
      });
      const isBroken = bytes[0] !== startup && !connection.isAmidQuery && end[0] !== 0x5a;
      if (isBroken) throw new Error('The embedded store has stopped working.');
    }
    this.#holder = connection.isAmidQuery || this.#engine.isInTransaction() ? connection : undefined;
    if (connection.isOver) connection.socket.destroySoon();
  }

  /** Ends what a connection that has gone had begun, and forgets what it had set. */
  async #abandon(connection: BackendConnection): Promise<void> {
    if (this.#holder === connection) {
      await this.#engine.execProtocolRawStream(sync, { onRawData: () => undefined });
      if (this.#engine.isInTransaction()) await this.#engine.exec('rollback');
      this.#holder = undefined;
    }
    await this.#engine.exec('discard all');
  }
}

// How many bytes it has, the first one a `Z`: PostgreSQL ends every answer with it.
const readyForQuery = 6;
// A message that begins a session has no type; it begins with its length.
const startup = 0;
const sync = Uint8Array.of(0x53, 0, 0, 0, 4);
