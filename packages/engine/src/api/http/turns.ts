import { AsyncResource } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { FairQueue } from '../../database/fair-queue.ts';
import type { Holder } from '../../shared-budget.ts';
import { holderOf } from './lifecycle.ts';

declare module 'fastify' {
  interface FastifyInstance {
    turns: Turns;
  }
}

/** Milliseconds after which a turn of the event loop begins no more work. */
const longTurn = 10;

/**
 * Begins the work of requests: at once, or, after a long turn of the event
 * loop, one of each caller in turn. So costly requests, also those that are
 * refused, delay their own caller. Those that one event releases, as the
 * look-up of their key, begin in turn, too.
 */
export class Turns {
  readonly #waiting = new FairQueue<() => void>(Number.POSITIVE_INFINITY);
  #turnBegan: number | undefined;
  /** Whether a request has begun whose work waits for its microtask. */
  #isBeginning = false;
  /** Whose work began last. */
  #last: Holder;
  /** Whose work made most turns long (majority vote, Boyer and Moore). */
  #heaviest: Holder;
  #votes = 0;

  take(request: FastifyRequest, begin: () => void) {
    const holder = holderOf(request);
    const beginWanted = () => {
      this.#last = holder;
      if (!request.call.hasLeft) begin();
    };
    const isFree = this.#waiting.length === 0 && !this.#isBeginning;
    if (isFree && !this.#isLong()) {
      this.#isBeginning = true;
      void Promise.resolve().then(this.#begun);
      return beginWanted();
    }
    // It begins in the turn of another request.
    this.#waiting.push(holder, AsyncResource.bind(beginWanted));
    this.#beginNext();
  }

  readonly #begun = () => {
    this.#isBeginning = false;
  };

  /** @returns the heaviest caller since the last call */
  takeHeaviest() {
    const heaviest = this.#heaviest;
    this.#heaviest = undefined;
    this.#votes = 0;
    return heaviest;
  }

  /** Node finishes the work of one immediate before it runs the next. */
  #beginNext() {
    setImmediate(() => {
      if (this.#isLong()) this.#beginNext();
      else this.#waiting.take(1)[0]?.();
    });
  }

  #isLong() {
    const now = performance.now();
    this.#turnBegan ??= this.#beginTurn(now);
    const isLong = now - this.#turnBegan > longTurn;
    if (isLong && this.#last !== undefined) this.#blame(this.#last);
    return isLong;
  }

  #beginTurn(now: number) {
    setImmediate(() => {
      this.#isLong();
      this.#turnBegan = undefined;
      this.#last = undefined;
    });
    return now;
  }

  #blame(holder: Holder) {
    if (this.#votes === 0) this.#heaviest = holder;
    this.#votes += this.#heaviest === holder ? 1 : -1;
    this.#last = undefined;
  }
}

/** Those that write wait when their body has arrived (`bodies.ts`). */
export function takeTurns(app: FastifyInstance) {
  app.addHook('onRequest', (request, _reply, done) => {
    const { call, route } = request;
    if (call.isWrite || route.config.public === true) done();
    else app.turns.take(request, done);
  });
}
