import { connect, type Socket } from 'node:net';

/** How a request ended: well; with 503; not with 2xx; with GraphQL errors; with its connection; not at all. */
export type Outcome = 'ok' | 'unavailable' | 'status' | 'graphql' | 'socket' | 'hung';

/** One HTTP/1.1 connection that sends a request, waits for the whole answer, and stands up again when it is closed. */
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
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
      this.#answer('socket');
    });
    this.#socket = socket;
  }

  async ask(request: Buffer): Promise<Outcome> {
    try {
      if (!this.#socket) await this.open();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
      return 'socket';
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#socket?.write(request);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #receive(data: Buffer): void {
    this.#received = this.#received ? Buffer.concat([this.#received, data]) : data;
    const outcome = outcomeOf(this.#received);
    if (outcome) this.#answer(outcome);
  }

  #answer(outcome: Outcome): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    this.#received = undefined;
    resolve?.(outcome);
  }
}

// JSON holds no raw line break, so this ends a chunked body and nothing else.
const lastChunk = Buffer.from('\r\n0\r\n\r\n');

/** Undefined while the answer is not complete. */
function outcomeOf(answer: Buffer): Outcome | undefined {
  const headEnd = answer.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = answer.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const isComplete = length
    ? answer.length >= headEnd + 4 + Number(length)
    : answer.subarray(-lastChunk.length).equals(lastChunk);
  if (!isComplete) return undefined;
  if (head[9] !== '2') return head.startsWith('503', 9) ? 'unavailable' : 'status';
  return answer.includes('"errors":') ? 'graphql' : 'ok';
}
