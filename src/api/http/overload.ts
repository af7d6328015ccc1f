import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Incident } from '@animal-store/log/incident';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { Unavailable } from '../../errors.ts';
import { type Holder, SharedBudget } from '../../shared-budget.ts';

// More than the process can take: connections at a time, requests, large bodies
// and answers.

declare module 'fastify' {
  interface FastifyInstance {
    /** Number of requests rejected because the event loop was overloaded. */
    shedRequests: number;
  }
}

/**
 * Accepts queued connections before it begins requests. Node accepts one
 * connection per turn of the event loop (libuv, `uv__server_io`), so of
 * thousands of new clients the last would wait for seconds while the requests
 * of the first make turns long. Nearly every turn accepts a connection, and the
 * event loop is busy: more connections are queued. Requests then wait until all
 * are accepted, at most a second. For the same time afterwards none has to wait.
 * Public routes, including health checks, never wait.
 */
export function acceptConnectionsFirst(app: FastifyInstance): void {
  let accepted = 0;
  let isWatching = false;
  /** The requests that wait; undefined while none has to. */
  let waiting: Array<() => void> | undefined;
  const countTurns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
  const isQueuedFor = async (milliseconds: number) => {
    accepted = 0;
    const turns = countTurns();
    const before = performance.eventLoopUtilization();
    await sleep(milliseconds, undefined, { ref: false });
    const { utilization } = performance.eventLoopUtilization(before);
    const nearlyAll = Math.max(2, 0.8 * (countTurns() - turns));
    return utilization > 0.5 && accepted >= (waiting ? 1 : nearlyAll);
  };
  const watch = async () => {
    isWatching = true;
    let isQueued = await isQueuedFor(100);
    while (isQueued) {
      waiting = [];
      const since = performance.now();
      const waited = () => performance.now() - since;
      do isQueued = await isQueuedFor(10);
      while (isQueued && waited() < 1000);
      for (const begin of waiting) begin();
      waiting = undefined;
      if (isQueued) isQueued = await isQueuedFor(waited());
    }
    isWatching = false;
  };
  app.server.on('connection', () => {
    if (!isWatching) void watch();
    accepted += 1;
  });
  app.addHook('onRequest', ({ routeOptions }, _reply, done) => {
    const mustWait = waiting && routeOptions.config.public !== true;
    if (mustWait) waiting?.push(done);
    else done();
  });
}

/**
 * Minimum number of samples: a single one may be a pause for garbage collection
 * or another process.
 */
const fewestTurns = 4;
const resolution = 10;
/** Milliseconds between two checks of the delay. */
const checkInterval = 1000;
/** The share of a core that a full event loop uses at least. */
const busyShare = 0.7;

/**
 * Rejects new work with 503 while the event loop is overloaded, that is, while
 * most of its turns in a second were long and it used its core: turns are also
 * long on a machine that other programs keep busy, where refusals do not help.
 * Public routes, including health checks, are exempt.
 *
 * `maxDelay` is the median delay (ms) of the event loop beyond which it is
 * overloaded; 0 for no limit.
 */
export function overload(app: FastifyInstance, maxDelay: number): void {
  app.decorate('shedRequests', 0);
  if (maxDelay === 0) return;
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  let used = process.threadCpuUsage();
  let since = performance.now();
  let isFull = false;
  const incident = new Incident({
    onStart: () => app.log.warn('requests are refused: the event loop is full'),
    onEnd: (ms, refused) =>
      app.log.info({ ms, refused }, 'requests are no longer refused'),
  });
  const timer = setInterval(() => {
    if (delay.count < fewestTurns) return;
    const { user, system } = process.threadCpuUsage(used);
    const share = (user + system) / 1000 / (performance.now() - since);
    const median = delay.percentile(50) / 1e6 - resolution;
    isFull = share > busyShare && median > maxDelay;
    delay.reset();
    used = process.threadCpuUsage();
    since = performance.now();
    if (!isFull) incident.recovered();
  }, checkInterval).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    delay.disable();
  });

  app.addHook('onRequest', ({ routeOptions }, reply, done) => {
    if (!isFull || routeOptions.config.public === true) return done();
    app.shedRequests += 1;
    incident.occurred();
    reply.header('connection', 'close');
    done(new Unavailable('The service is overloaded; try again shortly.'));
  });
}

/** Bytes. The number of connections bounds smaller bodies. */
export const largeBodyBytes = 65_536;

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
const mostUnread = 128 * 1024 * 1024;

/** Bounds the memory of all answers and events that clients have not read. */
export class Unread {
  readonly budget = new SharedBudget(mostUnread);
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
