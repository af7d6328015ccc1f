import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { BackendConnection } from './connection.ts';

/**
 * Multiplexes connections onto PGlite, which is a single backend.
 * `@electric-sql/pglite-socket` mixes the messages of two connections when one
 * of them arrives in pieces, and hangs forever after the engine throws
 * (https://github.com/electric-sql/pglite/issues/1046). Here a connection has
 * exclusive use of the backend during a query and during a transaction.
 *
 * An engine that throws or sends an incomplete answer causes an unhandled
 * rejection, which ends the thread and the service.
 */
export class SharedBackend {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #connections = new Set<BackendConnection>();
  /** The connections with pending messages, in order of arrival. */
  #waiting: BackendConnection[] = [];
  /** The connection with exclusive use. */
  #holder: BackendConnection | undefined;
  /** The connection whose settings the engine's session has. */
  #configuredBy: BackendConnection | undefined;
  #isBusy = false;
  #silence: NodeJS.Timeout | undefined;

  /**
   * @param maxSilence how long (ms) a connection may be idle in a transaction,
   *   because all others wait
   */
  constructor(
    private readonly engine: PGlite,
    private readonly maxSilence = 30_000,
  ) {}

  async listen(path: string) {
    await once(this.#server.listen(path), 'listening');
  }

  /** After this, nothing reaches the engine. */
  close() {
    this.#server.close();
    for (const { socket } of this.#connections) socket.destroy();
    clearTimeout(this.#silence);
  }

  #accept(socket: Socket) {
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

  #enqueue(connection: BackendConnection) {
    if (!this.#waiting.includes(connection)) this.#waiting.push(connection);
    if (!this.#isBusy) void this.#work();
  }

  async #work() {
    this.#isBusy = true;
    for (let next = this.#next(); next; next = this.#next()) {
      if (next.socket.destroyed) await this.#abandon(next);
      else await this.#serve(next);
    }
    this.#isBusy = false;
  }

  #next() {
    if (!this.#server.listening) return undefined;
    if (!this.#holder) return this.#waiting.shift();
    const place = this.#waiting.indexOf(this.#holder);
    if (place < 0) return undefined;
    return this.#waiting.splice(place, 1)[0];
  }

  async #serve(connection: BackendConnection) {
    clearTimeout(this.#silence);
    if (this.#configuredBy !== connection) await this.#reset();
    for (let bytes = connection.take(); bytes; bytes = connection.take())
      await this.#execute(connection, bytes);
    if (connection.hasSettings) this.#configuredBy = connection;
    this.#holder = undefined;
    if (connection.isAmidQuery || this.engine.isInTransaction()) {
      this.#holder = connection;
      // A stopped process, or an idle psql. Closing the connection rolls the
      // transaction back.
      const close = () => connection.socket.destroy();
      this.#silence = setTimeout(close, this.maxSilence).unref();
    }
    if (connection.isOver) connection.socket.destroySoon();
  }

  /** @throws Error when the engine does not end its answer */
  async #execute(connection: BackendConnection, bytes: Uint8Array) {
    let end = Buffer.alloc(0);
    await this.engine.execProtocolRawStream(bytes, {
      onRawData(data) {
        end = Buffer.concat([end, data]).subarray(-readyForQuery.length);
        connection.write(data);
      },
    });
    const mayGoOn = bytes[0] === startup || connection.isAmidQuery;
    if (!mayGoOn && end[0] !== readyForQuery.type)
      throw new Error('The embedded store has stopped working.');
  }

  /**
   * Ends the query or transaction of a closed connection, and resets its
   * session.
   */
  async #abandon(connection: BackendConnection) {
    if (this.#holder === connection) {
      await this.engine.execProtocolRawStream(sync, {
        onRawData: () => undefined,
      });
      if (this.engine.isInTransaction()) await this.engine.exec('rollback');
      this.#holder = undefined;
    }
    this.#configuredBy = connection;
    await this.#reset();
  }

  /**
   * Discards settings and temporary tables, because all connections share one
   * session.
   */
  async #reset() {
    if (!this.#configuredBy) return;
    this.#configuredBy.hasSettings = false;
    this.#configuredBy = undefined;
    await this.engine.exec('discard all');
  }
}

// PostgreSQL ends every answer with ReadyForQuery, whose type is `Z`.
const readyForQuery = { type: 0x5a, length: 6 };
// A startup message has no type byte; it begins with its length.
const startup = 0;
const sync = Uint8Array.of(0x53, 0, 0, 0, 4);
