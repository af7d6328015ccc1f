import { Agent, request } from 'node:http';

/** The API key of the services and of the drills' clients. */
export const serviceKey = 'the-key-of-the-drills-and-of-nothing-else';

/** Default of `timeoutMs`. */
const defaultTimeoutMs = 30_000;

export type Reply =
  | { kind: 'answer'; status: number; retryAfter: boolean; text: string }
  | { kind: 'broken' }
  /** Connection refused: the request was not sent. */
  | { kind: 'closed' }
  | { kind: 'hung' };

export interface ClientOptions {
  /** Opens a new connection for each request. */
  reconnects?: boolean;
  /** A request without a response after this time counts as hung. */
  timeoutMs?: number;
}

/** A client of one service process, with one connection. */
export class Client {
  readonly origin: string;
  readonly #agent: Agent;
  readonly #timeoutMs: number;

  constructor(
    origin: string,
    { reconnects = false, timeoutMs = defaultTimeoutMs }: ClientOptions = {},
  ) {
    this.origin = origin;
    this.#agent = new Agent({ keepAlive: !reconnects, maxSockets: 1 });
    this.#timeoutMs = timeoutMs;
  }

  get(path: string): Promise<Reply> {
    return this.#send('GET', path);
  }

  post(
    path: string,
    input: object,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    return this.#send('POST', path, JSON.stringify(input), headers);
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(
    method: string,
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    const allHeaders = {
      authorization: `Bearer ${serviceKey}`,
      ...headers,
      ...(body && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    };
    return new Promise((resolve) => {
      const outgoing = request(
        this.origin + path,
        { method, headers: allHeaders, agent: this.#agent },
        (incoming) => {
          let text = '';
          incoming.setEncoding('utf8').on('data', (chunk) => {
            text += chunk;
          });
          incoming.on('end', () => {
            const retryAfter = incoming.headers['retry-after'] !== undefined;
            settle({
              kind: 'answer',
              status: incoming.statusCode ?? 0,
              retryAfter,
              text,
            });
          });
          incoming.on('error', () => settle({ kind: 'broken' }));
        },
      );
      const timer = setTimeout(() => {
        settle({ kind: 'hung' });
        outgoing.destroy();
      }, this.#timeoutMs);
      const settle = (reply: Reply) => {
        clearTimeout(timer);
        resolve(reply);
      };
      outgoing.on('error', ({ code }: NodeJS.ErrnoException) =>
        settle({ kind: code === 'ECONNREFUSED' ? 'closed' : 'broken' }),
      );
      outgoing.end(body);
    });
  }
}
