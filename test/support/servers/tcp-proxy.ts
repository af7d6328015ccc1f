import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { eventually, freePort } from '../process.ts';

/**
 * A TCP proxy to a server, by default at PostgreSQL's port. A test can close
 * and reopen it, or make it drop all bytes while its connections stay open.
 */
export class TcpProxy {
  /** While true the proxy drops all bytes, and closes no connection. */
  isSilent = false;
  /**
   * The proxy cuts all connections instead of forwarding a response that
   * contains this text.
   */
  cutsAt: string | undefined;
  /** Where later connections lead. */
  target: URL;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #port = 0;

  /**
   * @param target where later connections lead
   * @param sent gets the bytes that clients send to the server
   */
  constructor(target: URL, sent?: (bytes: Buffer) => void) {
    this.target = target;
    this.#server = createServer((near) => {
      const far = connect(
        Number(this.target.port || 5432),
        this.target.hostname,
      );
      if (sent) near.on('data', sent);
      this.#forward(near, far);
      this.#forward(
        far,
        near,
        (bytes) => this.cutsAt !== undefined && bytes.includes(this.cutsAt),
      );
    });
  }

  /** Opens the proxy, or reopens it on the same port. */
  async open(): Promise<void> {
    // The system must not give the port to another process while the proxy is
    // cut.
    this.#port ||= await freePort();
    // A process that another test is starting holds a copy of the closed socket
    // until its program runs.
    await eventually(async () => {
      await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
      return true;
    });
  }

  /** Ends all connections, and accepts no new ones. */
  cut(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  /** The URL of the server through this proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  #forward(
    from: Socket,
    to: Socket,
    isLast: (bytes: Buffer) => boolean = () => false,
  ): void {
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
