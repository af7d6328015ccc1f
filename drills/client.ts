import { Agent, request } from 'node:http';

/** Of the services under drill, and of their users. */
export const serviceKey = 'the-key-of-the-drills-alone';

/** How long a request may take until it counts as hung. */
const patience = 30_000;

export type Reply =
  | { kind: 'answer'; status: number; retryAfter: boolean; text: string }
  | { kind: 'broken' }
  | { kind: 'hung' };

/** One user of one process of the service, on one connection that stays open. */
export class Client {
  readonly origin: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(origin: string) {
    this.origin = origin;
  }

  get(path: string): Promise<Reply> {
    return this.#ask('GET', path);
  }

  post(path: string, input: object): Promise<Reply> {
    return this.#ask('POST', path, JSON.stringify(input));
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(method: string, path: string, body?: string): Promise<Reply> {
    const headers = {
      authorization: `Bearer ${serviceKey}`,
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
      }, patience);
      const answer = (reply: Reply) => {
        clearTimeout(clock);
        resolve(reply);
      };
      outgoing.on('error', () => answer({ kind: 'broken' }));
      outgoing.end(body);
    });
  }
}
