import type { ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Config } from '../../config/config.ts';
import { StoreError, Unavailable } from '../../errors.ts';

/** The requests that subscribe, until their responses are closed. */
export class Places {
  readonly #taken = new Set<FastifyRequest>();

  constructor(
    /** `max` counts the subscriptions of this process. */
    private readonly limits: Config['subscriptions'],
    private readonly left: (request: FastifyRequest) => void,
  ) {}

  get size() {
    return this.#taken.size;
  }

  has(request: FastifyRequest) {
    return this.#taken.has(request);
  }

  /** Why a stream does not begin, although it had a place. */
  refusalOf(request: FastifyRequest) {
    if (!this.has(request)) return gone();
    return request.server.isDraining ? shuttingDown() : undefined;
  }

  /**
   * @throws StoreError TOO_MANY_REQUESTS when the key has too many; Unavailable
   *   when the process has too many, or is shutting down
   */
  take(request: FastifyRequest, response: ServerResponse) {
    const { max, perKey } = this.limits;
    if (request.server.isDraining) throw shuttingDown();
    if (this.size >= max)
      throw new Unavailable(
        'Too many subscriptions are open; try again shortly.',
      );
    const { caller } = request.call;
    const ofKey = [...this.#taken].filter(
      ({ call }) => call.caller?.id === caller?.id,
    );
    if (ofKey.length >= perKey) {
      const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
      throw new StoreError('TOO_MANY_REQUESTS', message, {
        headers: { 'retry-after': '5' },
      });
    }
    if (request.raw.socket.destroyed) throw gone();
    this.#taken.add(request);
    response.once('close', () => {
      this.#taken.delete(request);
      this.left(request);
    });
  }
}

const gone = () => new Unavailable('The client has disconnected.');
const shuttingDown = () =>
  new Unavailable('The service is shutting down; subscribe again shortly.');
