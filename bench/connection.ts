import { connect, type Socket } from 'node:net';

/**
 * The result of a request: 2xx; 503; another status; 2xx with GraphQL errors; a
 * broken connection; no response.
 */
export type Outcome =
  | 'ok'
  | 'unavailable'
  | 'status'
  | 'graphql'
  | 'socket'
  | 'hung';

/**
 * An HTTP/1.1 connection with one request at a time. After it was closed, the
 * next request opens it again.
 */
export class Connection {
  #socket: Socket | undefined;
  #received: Buffer | undefined;
  #waiting: ((outcome: Outcome) => void) | undefined;

  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  async open(): Promise<void> {
    const socket = connect({
      port: this.#port,
      host: '127.0.0.1',
      noDelay: true,
    });
    await new Promise((resolve, reject) =>
      socket.once('connect', resolve).once('error', reject),
    );
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
      this.#finish('socket');
    });
    this.#socket = socket;
  }

  async request(message: Buffer): Promise<Outcome> {
    try {
      if (!this.#socket) await this.open();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
      return 'socket';
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#socket?.write(message);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #receive(data: Buffer): void {
    this.#received = this.#received
      ? Buffer.concat([this.#received, data])
      : data;
    const outcome = outcomeOf(this.#received);
    if (outcome) this.#finish(outcome);
  }

  #finish(outcome: Outcome): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    this.#received = undefined;
    resolve?.(outcome);
  }
}

// JSON contains no raw line breaks, so these bytes occur only at the end of a
// chunked body.
const lastChunk = Buffer.from('\r\n0\r\n\r\n');

/** @returns undefined while the response is incomplete */
function outcomeOf(response: Buffer): Outcome | undefined {
  const headEnd = response.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = response.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const isComplete = length
    ? response.length >= headEnd + 4 + Number(length)
    : response.subarray(-lastChunk.length).equals(lastChunk);
  if (!isComplete) return undefined;
  if (head[9] !== '2')
    return head.startsWith('503', 9) ? 'unavailable' : 'status';
  return response.includes('"errors":') ? 'graphql' : 'ok';
}
