import type { ServerResponse } from 'node:http';
import { Transform } from 'node:stream';
import type { preParsingHookHandler, RouteOptions } from 'fastify';
import { tryAgain } from '../../errors.ts';
import { isRead } from './operation.ts';

/** In bytes. Anything smaller is bounded by the number of connections. */
const large = 65_536;

/**
 * Bounds the memory of concurrent large requests, each of which is allowed: those beyond it get 503 until others end.
 */
export class InFlight {
  readonly #what: string;
  readonly #maxBytes: number;
  /** How many bytes each response holds. */
  readonly #held = new Map<ServerResponse, number>();
  #bytes = 0;

  /** @param what is counted, for the error message */
  constructor(what: string, maxBytes: number) {
    this.#what = what;
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts large sizes until the response is sent or its client disconnects. The first one is always admitted.
   *
   * @returns the bytes counted
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(bytes: number, response: ServerResponse): number {
    // A response that is already closed emits no `close` event, so nothing would release it.
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

/** Counts bodies as they arrive, on routes that take one. Requests without a key never get here. */
export function bodyHooks({ method }: RouteOptions, bodies: InFlight): { preParsing?: preParsingHookHandler } {
  if (![method].flat().some((one) => !isRead(one))) return {};
  return {
    preParsing({ headers }, reply, payload, done) {
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
      // The reader of the stream gets the error; there is none once the request has been rejected.
      counted.on('error', () => undefined);
      payload.on('error', (error) => counted.destroy(error));
      done(null, payload.pipe(counted));
    },
  };
}
