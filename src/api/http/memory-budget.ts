import type { ServerResponse } from 'node:http';
import { Transform } from 'node:stream';
import type { preParsingHookHandler, RouteOptions } from 'fastify';
import { tryAgain } from '../../errors.ts';
import { isRead } from './headers.ts';

/** In bytes. What is smaller is bounded by the number of connections. */
const large = 65_536;

export function isLarge(payload: unknown): payload is string | Buffer {
  return (typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length > large;
}

/** Bounds the memory of all large bodies, or of all large answers: those beyond it get 503 until others end. */
export class MemoryBudget {
  readonly #what: string;
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param what is counted, for the error message */
  constructor(what: string, maxBytes: number) {
    this.#what = what;
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts bytes until the response is sent or its client disconnects. The first ones are always admitted.
   *
   * @param isForced counts beyond the limit as well: for what must not be refused
   * @returns a function that counts more for the same response
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(bytes: number, response: ServerResponse, isForced = false): (more: number) => void {
    let held = 0;
    const add = (more: number) => {
      if (!isForced && this.#bytes > 0 && this.#bytes + more > this.#maxBytes) {
        throw tryAgain(`Too many large ${this.#what} are under way; try again shortly.`);
      }
      // A closed response emits no further `close` event that would release them.
      if (response.closed) return;
      this.#bytes += more;
      held += more;
    };
    add(bytes);
    response.once('close', () => {
      this.#bytes -= held;
    });
    return add;
  }
}

/** Counts large bodies as they arrive. Requests without a key never get here. */
export function bodyHooks({ method }: RouteOptions, budget: MemoryBudget): { preParsing?: preParsingHookHandler } {
  if ([method].flat().every(isRead)) return {};
  return {
    preParsing({ headers }, reply, payload, done) {
      const mayBeLarge = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > large;
      if (!mayBeLarge) return done(null, payload);
      let uncounted = 0;
      let hold = (bytes: number) => {
        hold = budget.hold(bytes, reply.raw);
      };
      const counted = new Transform({
        transform(chunk: Buffer, _encoding, next) {
          uncounted += chunk.length;
          if (uncounted <= large) return next(null, chunk);
          try {
            hold(uncounted);
            uncounted = 0;
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
