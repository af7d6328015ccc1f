import type { FastifyRequest } from 'fastify';
import type { Authenticator } from '../../access/keys/authenticator.ts';
import { authenticate } from '../../access/keys/bearer.ts';
import type { StoreError } from '../../errors.ts';
import type { EventStream } from './event-stream.ts';

/** Ends the streams of keys that are no longer valid. */
export class KeyChecks {
  /** The `Authorization` headers that are being checked. */
  readonly #checking = new Set<string>();

  constructor(
    private readonly keys: Authenticator,
    private readonly streams: Map<FastifyRequest, EventStream>,
  ) {}

  /**
   * Checks a key once for all its streams. While the database is unavailable,
   * they stay open and get no items.
   */
  async check(request: FastifyRequest) {
    const authorization = `${request.headers.authorization}`;
    if (this.#checking.has(authorization)) return;
    this.#checking.add(authorization);
    try {
      await authenticate(this.keys, request, request.call.continued());
    } catch (error) {
      const { code } = error as Partial<StoreError>;
      for (const [other, stream] of this.streams) {
        const isOfKey = other.headers.authorization === authorization;
        if (code === 'UNAUTHENTICATED' && isOfKey) stream.end(error);
      }
    }
    this.#checking.delete(authorization);
  }
}
