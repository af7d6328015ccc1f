import type { ServerResponse } from 'node:http';
import { Transform } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { tryAgain } from '../errors.ts';

/** What is smaller is bounded by the number of connections. */
const large = 65_536;

/**
 * Bounds the memory of many large requests at a time, each of which is allowed: beyond it they are refused with 503 until
 * some of the others are over.
 */
export class InFlight {
  readonly #what: string;
  readonly #maxBytes: number;
  /** How much of it each response holds. */
  readonly #held = new Map<ServerResponse, number>();
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
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      throw tryAgain(`Too many large ${this.#what} are under way; try again shortly.`);
    }
    this.#bytes += bytes;
    const held = this.#held.get(response);
    this.#held.set(response, (held ?? 0) + bytes);
    if (held === undefined) response.once('close', () => this.#release(response));
    return bytes;
  }

  #release(response: ServerResponse): void {
    this.#bytes -= this.#held.get(response) ?? 0;
    this.#held.delete(response);
  }
}

export interface LargeBodiesOptions {
  bodies: InFlight;
}

/** Counts bodies as they arrive. Register it after `bearer`: who has no key sends none. */
export const largeBodies = fastifyPlugin<LargeBodiesOptions>(async (app: FastifyInstance, { bodies }) => {
  app.addHook('preParsing', ({ headers }, reply, payload, done) => {
    const mayBeLarge = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > large;
    if (!mayBeLarge) return done(null, payload);
    let arrived = 0;
    let held = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        arrived += chunk.length;
        try {
          held += bodies.hold(arrived - held, reply.raw);
          next(null, chunk);
        } catch (error) {
          next(error as Error);
        }
      },
    });
    // Whoever reads it is told; nobody does any more when the request has been refused.
    counted.on('error', () => undefined);
    payload.on('error', (error) => counted.destroy(error));
    done(null, payload.pipe(counted));
  });
});
