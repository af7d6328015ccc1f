import type { FastifyRequest } from 'fastify';
import type { Authenticator } from '../../access/keys/authenticator.ts';
import { authenticate } from '../../access/keys/bearer.ts';
import type { StoreError } from '../../errors.ts';
import type { EventStream } from './event-stream.ts';

/**
 * Ends the streams of keys that are no longer valid.
 *
 * @returns checks a key once for all its streams. While the database is
 *   unavailable, they stay open and get no items.
 */
export function keyChecks(
  keys: Authenticator,
  streams: ReadonlyMap<FastifyRequest, EventStream>,
) {
  /** The `Authorization` headers that are being checked. */
  const checking = new Set<string>();
  return async (request: FastifyRequest) => {
    const authorization = `${request.headers.authorization}`;
    if (checking.has(authorization)) return;
    checking.add(authorization);
    try {
      await authenticate(keys, request, request.call.continued());
    } catch (error) {
      const { code } = error as Partial<StoreError>;
      for (const [other, stream] of streams) {
        const isOfKey = other.headers.authorization === authorization;
        if (code === 'UNAUTHENTICATED' && isOfKey) stream.end(error);
      }
    }
    checking.delete(authorization);
  };
}
