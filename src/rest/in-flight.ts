import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';

/** What is smaller is bounded by the number of connections. */
const large = 65_536;

/**
 * Bounds the memory of many large requests at a time, each of which is allowed: beyond it they are refused with 503 until
 * some of the others are over.
 */
export class InFlight {
  readonly #what: string;
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param what they are, for the message */
  constructor(what: string, maxBytes: number) {
    this.#what = what;
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts what is large until the response has been sent, or its client has gone. The first one is always let in.
   *
   * @returns what was counted
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(bytes: number, response: ServerResponse): number {
    // Of a client that has gone nothing more would be heard.
    if (!(bytes > large) || response.closed) return 0;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) throw this.#tooMuch();
    this.#bytes += bytes;
    response.once('close', () => {
      this.#bytes -= bytes;
    });
    return bytes;
  }

  #tooMuch(): StoreError {
    return new StoreError('SERVICE_UNAVAILABLE', `Too many large ${this.#what} are under way; try again shortly.`, {
      headers: { 'retry-after': '1' },
    });
  }
}

export interface LargeBodiesOptions {
  bodies: InFlight;
}

/** Counts the bodies that are being read. Register it after `bearer`: who has no key sends none. */
export const largeBodies = fastifyPlugin<LargeBodiesOptions>(async (app: FastifyInstance, { bodies }) => {
  app.addHook('preParsing', ({ headers, routeOptions }, reply, _payload, done) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = headers;
    const bytes = length === undefined ? (encoding ? routeOptions.bodyLimit : 0) : Number(length);
    try {
      bodies.hold(Math.min(bytes, routeOptions.bodyLimit), reply.raw);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
});
