import type { FastifyReply, FastifyRequest } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { Unavailable } from '../../errors.ts';
import { type Holder, SharedBudget } from '../../shared-budget.ts';

/** The key of a request; the network of a client without one. */
export function holderOf({ call, ip }: FastifyRequest): Holder {
  return call.caller?.id ?? networkOf(ip);
}

/**
 * Bytes of an answer that needs no room. The number of connections bounds such
 * answers: a connection has one at most, because each that waits for another
 * one counts.
 */
export const smallAnswer = 8192;

/** Twice the largest answer, so that a key alone may have it (SECURITY.md). */
const maxBytes = 128 * 1024 * 1024;

/** Bounds the memory of all answers and events that clients have not read. */
export class Unread {
  readonly budget = new SharedBudget(maxBytes);
  /** The bytes of each response. */
  readonly #held = new Map<FastifyReply['raw'], number>();

  /**
   * Counts the bytes of an answer until its client has read it or disconnects,
   * in place of those that were reserved.
   *
   * @param isForced for answers that must be sent
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  hold(
    request: FastifyRequest,
    { raw: response }: FastifyReply,
    bytes: number,
    isForced = false,
  ): void {
    // A response has no socket while it waits for another one.
    const isCounted = bytes > smallAnswer || response.socket === null;
    const reserved = this.#held.get(response);
    // A closed response emits no `close` event to give the bytes back.
    const isOver = response.closed || (!isCounted && reserved === undefined);
    if (isOver) return;
    const holder = holderOf(request);
    const held = isCounted ? bytes : 0;
    const more = held - (reserved ?? 0);
    if (isForced || more <= 0) this.budget.add(holder, more);
    else if (!this.budget.take(holder, more)) throw tooMany('answers');
    this.#held.set(response, held);
    if (reserved !== undefined) return;
    response.once('close', () => {
      this.budget.add(holder, -(this.#held.get(response) ?? 0));
      this.#held.delete(response);
    });
  }
}

export function tooMany(noun: 'answers' | 'bodies'): Error {
  const message = `Too many large ${noun} are under way; try again shortly.`;
  return new Unavailable(message);
}
