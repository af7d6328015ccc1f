import { Agent, request } from 'node:http';

/** Of the services under drill, and of their users. */
export const serviceKey = 'the-key-of-the-drills-and-of-nothing-else';

/** How long (ms) a request may take until it counts as hung. */
const longest = 30_000;

export type Reply =
  | { kind: 'answer'; status: number; retryAfter: boolean; text: string }
  | { kind: 'broken' }
  /** Nobody listens: the request has not been sent. */
  | { kind: 'closed' }
  | { kind: 'hung' };

export interface ClientOptions {
  /** Whether each request has a connection of its own. */
  isFresh?: boolean;
  /** How long (ms) a request may take until it counts as hung. */
  patience?: number;
}

/** One user of one process of the service, on one connection that stays open. */
export class Client {
  readonly origin: string;
  readonly #agent: Agent;
  readonly #patience: number;

  constructor(origin: string, { isFresh = false, patience = longest }: ClientOptions = {}) {
    this.origin = origin;
    this.#agent = new Agent({ keepAlive: !isFresh, maxSockets: 1 });
    this.#patience = patience;
  }

  get(path: string): Promise<Reply> {
    return this.#ask('GET', path);
  }

  post(path: string, input: object, more: Record<string, string> = {}): Promise<Reply> {
    return this.#ask('POST', path, JSON.stringify(input), more);
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(method: string, path: string, body?: string, more: Record<string, string> = {}): Promise<Reply> {
    const headers = {
      authorization: `Bearer ${serviceKey}`,
      ...more,
      ...(body && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    };
    return new Promise((resolve) => {
      const outgoing = request(this.origin + path, { method, headers, agent: this.#agent }, (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        incoming.on('end', () => {
          const retryAfter = incoming.headers['retry-after'] !== undefined;
          answer({ kind: 'answer', status: incoming.statusCode ?? 0, retryAfter, text });
        });
        incoming.on('error', () => answer({ kind: 'broken' }));
      });
      const clock = setTimeout(() => {
        answer({ kind: 'hung' });
        outgoing.destroy();
      }, this.#patience);
      const answer = (reply: Reply) => {
        clearTimeout(clock);
        resolve(reply);
      };
      outgoing.on('error', ({ code }: NodeJS.ErrnoException) =>
        answer({ kind: code === 'ECONNREFUSED' ? 'closed' : 'broken' }),
      );
      outgoing.end(body);
    });
  }
}
