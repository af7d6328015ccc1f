import type { FastifyInstance, FastifyRequest } from 'fastify';
import { FairQueue } from '../../database/batches.ts';
import type { Holder } from '../../shared-budget.ts';
import { holderOf } from './lifecycle.ts';

declare module 'fastify' {
  interface FastifyInstance {
    turns: Turns;
  }
}

/** Milliseconds after which a turn of the event loop begins no more work. */
const longTurn = 10;

interface Waiting {
  readonly request: FastifyRequest;
  begin(): void;
}

/**
 * Begins the work of requests: at once, or, after a long turn of the event
 * loop, one of each caller in turn. So costly requests, also those that are
 * refused, delay their own caller.
 */
export class Turns {
  readonly #waiting = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);
  /** What the work of each caller took (ms), until it is read. */
  #spent = new Map<Holder, number>();
  #turnBegan: number | undefined;
  #last: { readonly holder: Holder; readonly began: number } | undefined;

  take(request: FastifyRequest, begin: () => void) {
    const mayBegin = this.#waiting.length === 0 && !this.#isLong();
    if (mayBegin) return this.#begin({ request, begin });
    this.#waiting.push(holderOf(request), { request, begin });
    this.#beginNext();
  }

  /** The callers whose work took longest, at least half of the longest. */
  takeHeaviest() {
    const most = Math.max(...this.#spent.values());
    const heavy = [...this.#spent].filter(([, spent]) => spent > most / 2);
    this.#spent = new Map();
    return new Set(heavy.map(([holder]) => holder));
  }

  /** Node finishes the work of one immediate before it runs the next. */
  #beginNext() {
    setImmediate(() => {
      if (this.#isLong()) return this.#beginNext();
      const [next] = this.#waiting.take(1);
      if (next && !next.request.call.hasLeft) this.#begin(next);
    });
  }

  #begin({ request, begin }: Waiting) {
    this.#last = { holder: holderOf(request), began: performance.now() };
    begin();
  }

  #isLong() {
    const now = performance.now();
    this.#charge(now);
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      setImmediate(() => {
        this.#charge(performance.now());
        this.#turnBegan = undefined;
      });
    }
    return now - this.#turnBegan > longTurn;
  }

  #charge(now: number) {
    if (!this.#last) return;
    const { holder, began } = this.#last;
    const spent = this.#spent.get(holder) ?? 0;
    this.#spent.set(holder, spent + now - began);
    this.#last = undefined;
  }
}

/** Those that write wait when their body has arrived (`bodies.ts`). */
export function takeTurns(app: FastifyInstance) {
  const turns = new Turns();
  app.decorate('turns', turns);
  app.addHook('onRequest', (request, _reply, done) => {
    const isPublic = request.routeOptions.config.public === true;
    if (isPublic || request.call.isWrite) done();
    else turns.take(request, done);
  });
}
