import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { eventually, freePort } from './process.ts';

/** A way to a server, PostgreSQL where nothing is said, that can be cut and mended, and that can lose everything without closing a connection. */
export class Road {
  /** While true nothing arrives, and no connection ends. */
  isSilent = false;
  /** Is cut in the place of an answer of PostgreSQL that has this in it. */
  cutsAt: string | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  readonly #target: URL;
  #port = 0;

  /** @param sent sees what is sent to the server */
  constructor(target: URL, sent?: (bytes: Buffer) => void) {
    this.#target = target;
    this.#server = createServer((near) => {
      const far = connect(Number(target.port || 5432), target.hostname);
      if (sent) near.on('data', sent);
      this.#forward(near, far);
      this.#forward(far, near, (bytes) => this.cutsAt !== undefined && bytes.includes(this.cutsAt));
    });
  }

  /** Opens it, or mends it: its port stays the same. */
  async open(): Promise<void> {
    // Not a port that the system gives to others while this road is cut.
    this.#port ||= await freePort();
    // A process that another test is starting holds a copy of the closed socket until its program runs.
    await eventually(async () => {
      await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
      return true;
    });
  }

  /** Ends all connections, and takes no others. */
  cut(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  /** The server, by this road. */
  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  #forward(from: Socket, to: Socket, isLast: (bytes: Buffer) => boolean = () => false): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => {
      if (isLast(bytes)) this.cut();
      else if (!this.isSilent) to.write(bytes);
    });
    from.on('error', () => undefined);
    from.on('close', () => {
      if (!this.isSilent) to.destroy();
    });
  }
}
