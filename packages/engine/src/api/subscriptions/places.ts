import type { FastifyRequest } from 'fastify';
import type { Config } from '../../config/config.ts';
import { StoreError, Unavailable } from '../../errors.ts';

/** The requests that subscribe, until their responses are closed. */
type Places = ReadonlySet<FastifyRequest>;

/** Why a stream does not begin, although it had a place. */
export function refusalOf(request: FastifyRequest, taken: Places) {
  if (!taken.has(request)) return gone();
  return request.server.isDraining ? shuttingDown() : undefined;
}

/**
 * @param max counts the subscriptions of this process
 * @throws StoreError TOO_MANY_REQUESTS when the key has too many; Unavailable
 *   when the process has too many, or is shutting down
 */
export function assertPlace(
  request: FastifyRequest,
  taken: Places,
  { max, perKey }: Config['subscriptions'],
) {
  if (request.server.isDraining) throw shuttingDown();
  if (taken.size >= max)
    throw new Unavailable(
      'Too many subscriptions are open; try again shortly.',
    );
  const { caller } = request.call;
  const ofKey = [...taken].filter(({ call }) => call.caller?.id === caller?.id);
  if (ofKey.length >= perKey) {
    const message = `This key has ${perKey} subscriptions open here, which is all it may have; close one first.`;
    throw new StoreError('TOO_MANY_REQUESTS', message, {
      headers: { 'retry-after': '5' },
    });
  }
  if (request.raw.socket.destroyed) throw gone();
}

const gone = () => new Unavailable('The client has disconnected.');
const shuttingDown = () =>
  new Unavailable('The service is shutting down; subscribe again shortly.');
