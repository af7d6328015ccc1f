import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { fromJson } from '../../support/http.ts';
import { eventually, freePort } from '../../support/process.ts';

interface Message {
  id: string;
  type: string;
  timestamp: string;
  challenge?: string;
  data: any;
  headers: Record<string, string>;
  body: string;
}

/** An endpoint on this machine, which keeps what it is sent. */
export class Receiver {
  readonly messages: Message[] = [];
  /** Replaces the answer 204. */
  answer: (response: ServerResponse, message: Message) => void = (response) =>
    response.writeHead(204).end();
  port = 0;
  #path = 0;
  #server = createServer();

  async open() {
    this.#server = createServer(async (request, response) => {
      const body = await text(request);
      if (request.url !== `/${this.#path}`) {
        response.writeHead(204).end();
        return;
      }
      const headers = request.headers as Record<string, string>;
      const id = `${headers['webhook-id']}`;
      const message = {
        id,
        headers,
        body,
        ...(fromJson(body) as object),
      } as Message;
      this.messages.push(message);
      this.answer(response, message);
    });
    const isNew = this.port === 0;
    // No other test gets it while the endpoint is away.
    await eventually(async () => {
      if (isNew) this.port = await freePort();
      const listening = once(this.#server, 'listening');
      this.#server.listen(this.port, '127.0.0.1');
      return listening.then(
        () => true,
        () => false,
      );
    });
  }

  cut() {
    this.#server.closeAllConnections();
  }

  async close() {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url() {
    return `http://127.0.0.1:${this.port}/${this.#path}`;
  }

  /** Forgets what it was sent, also what is still under way. */
  reset() {
    this.#path += 1;
    this.messages.length = 0;
    this.answer = (response) => response.writeHead(204).end();
  }

  /** Without what was sent again. */
  get distinct() {
    const ids = new Set<string>();
    return this.messages.filter(({ id }) => {
      const isNew = !ids.has(id);
      ids.add(id);
      return isNew;
    });
  }

  async until(count: number) {
    await eventually(async () => this.distinct.length >= count);
    return this.distinct;
  }
}

/** What the package of Standard Webhooks says of a message. */
export function verified(secret: string, { body, headers }: Message) {
  return new Webhook(secret).verify(body, headers);
}
