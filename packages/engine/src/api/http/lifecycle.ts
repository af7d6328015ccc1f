import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { Call } from '../../call.ts';
import { Unavailable } from '../../errors.ts';
import type { RequestEnd, RequestObserver } from '../../runtime/observers.ts';
import { SharedBudget } from '../../shared-budget.ts';
import { sendError } from './failures.ts';
import { dataHeaders } from './headers.ts';
import { isRead } from './negotiation.ts';
import { boundPieces } from './pieces.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What handlers pass to services, and observers log and measure. */
    call: Call;
    /** Fastify makes `routeOptions` each time. */
    route: FastifyRequest['routeOptions'];
  }
  interface FastifyInstance {
    unread: Unread;
    /** Requests whose responses are not complete. */
    activeRequests: { count: number };
    /**
     * True once the service is shutting down: proxies and clients use other
     * nodes, and requests are still served.
     */
    isDraining: boolean;
  }
}

/**
 * Limit for the requests of a connection that have no complete response. Node
 * parses all that it has read, up to 64 kB: thousands of pipelined requests.
 * Browsers and proxies send one at a time.
 */
const maxUnanswered = 50;

/** The same for all connections: each costs some 20 kB. */
const maxPipelined = 4096;

interface Limits {
  /** How long (ms) a request may take. */
  timeout: number;
  /** How long (ms) its client may read nothing of a long answer. */
  slowReader: number;
}

/**
 * The first and last steps of every request: deadline, observers, headers,
 * failures, and the end of its connection.
 */
export function lifecycle(
  app: FastifyInstance,
  { timeout, slowReader }: Limits,
  observers: readonly RequestObserver[],
) {
  const active = { count: 0 };
  app.decorate('activeRequests', active);
  app.decorate('isDraining', false);
  app.addHook('preClose', async () => {
    app.isDraining = true;
  });
  app.setErrorHandler(sendError);
  // By default Node rejects an unknown expectation without a body. Ignoring it
  // is allowed (RFC 9110 section 10.1.1).
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  );

  const unread = new Unread();
  app.decorate('unread', unread);
  const pipelined = new SharedBudget(maxPipelined);
  app.decorateRequest('call', null as never);
  app.decorateRequest('route', null as never);
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    const { unanswered = 0 } = socket;
    socket.unanswered = unanswered + 1;
    const isPipelined = unanswered > 0;
    const network = isPipelined ? networkOf(socket.remoteAddress ?? '') : '';
    if (unanswered >= maxUnanswered) return cutOff(socket);
    if (isPipelined && !pipelined.take(network)) return cutOff(socket);
    if (request.headers['transfer-encoding']) boundPieces(request.raw);
    const call = new Call(timeout, socket);
    call.isWrite = !isRead(request.method);
    call.request = request.id;
    request.call = call;
    request.route = request.routeOptions;
    socket.latestResponse = reply.raw;
    reply.headers(dataHeaders).header('x-request-id', request.id);
    active.count += 1;
    for (const observer of observers) observer.began?.(request);
    reply.raw.on('close', () => {
      active.count -= 1;
      unread.set(request, reply.raw, 0);
      socket.unanswered = (socket.unanswered ?? 1) - 1;
      if (isPipelined) pipelined.add(network, -1);
      const end = requestEnd(request, reply);
      for (const observer of observers) observer.ended(request, reply, end);
    });
    done();
  });
  answers(app, slowReader);
}

/** The service makes it itself: it passes no network. */
function isOwn({ raw }: FastifyRequest) {
  return 'isLightMyRequest' in raw;
}

/** The socket takes others at once. */
function isLong(payload: unknown) {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
  return !isWhole || payload.length > smallAnswer;
}

function requestEnd(
  request: FastifyRequest,
  { raw: response }: FastifyReply,
): RequestEnd {
  const {
    call,
    route: { url, schema },
  } = request;
  // A stream normally ends when its client disconnects.
  const isStream = call.streamedAfter !== undefined;
  const id = schema?.operationId;
  let api: RequestEnd['api'] = 'other';
  if (url === '/graphql') api = 'graphql';
  if (id) api = 'rest';
  return {
    milliseconds: performance.now() - call.arrived,
    isAnswered: response.writableFinished || isStream || isOwn(request),
    api,
    id,
  };
}

/**
 * Closes a connection (RFC 9112 section 9.3.2 allows it), because refusals
 * would wait in memory, too.
 */
function cutOff(socket: Socket) {
  // Node destroys the socket after the parser is done. Its requests until then
  // would fill the memory.
  if (socket.parser) socket.parser.onIncoming = () => 0;
  socket.destroy();
}

/** Bytes. The number of connections bounds smaller bodies. */
export const largeBodyBytes = 65_536;

/** Ends each answer, within the bound of what clients have not read. */
function answers(app: FastifyInstance, slowReader: number) {
  const { unread } = app;
  // Large answers are made one after another, and small requests are served in
  // between. Of the answers that the budget refuses, one is in memory.
  let pause: Promise<void> | undefined;
  const proceed = (next: () => void) => {
    if (pause) void pause.then(() => proceed(next));
    else next();
  };
  // A callback, because a refusal must be written before the parser sees what
  // follows on its connection.
  app.addHook('preSerialization', (_request, _reply, payload, done) => {
    if (pause && exceeds(payload, largeTexts, lengthOf))
      proceed(() => done(null, payload));
    else done(null, payload);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    // When it drains, Node closes only idle connections, and would wait for the
    // keep-alive timeout of active ones.
    if (app.isDraining || isUnread(request))
      reply.header('connection', 'close');
    // Also for a GraphQL operation that needs another method.
    if (reply.statusCode === 405)
      reply.header('allow', app.allowedMethods.of(request).join(', '));
    const { raw: response } = reply;
    if (isLong(payload) && !isOwn(request))
      response.setTimeout(slowReader, () => {
        // The client has read all that there is of a live list.
        if (response.writableLength === 0) return;
        request.call.cut ??= 'slow';
        response.destroy();
      });
    // A Buffer is a file, which all of its answers share.
    if (typeof payload !== 'string') return done(null, payload);
    // A character has three bytes at most. Of a short text they do not matter.
    const isShort = 3 * payload.length <= smallAnswer;
    const bytes = isShort ? payload.length : Buffer.byteLength(payload);
    const isSmallError = reply.statusCode >= 400 && bytes < 1024;
    unread.hold(request, reply, bytes, request.call.isWrite || isSmallError);
    if (bytes > largeBodyBytes)
      pause ??= serveOthers().then(() => {
        pause = undefined;
      });
    done(null, payload);
  });
}

// A character has up to six bytes in JSON.
const largeTexts = largeBodyBytes / 6;
const lengthOf = (part: unknown) =>
  typeof part === 'string' ? part.length : 0;

/**
 * Whether the parts of a value have more than this. It does not recurse,
 * because JSON may be nested deeper than the stack.
 */
export function exceeds(
  value: unknown,
  most: number,
  measure: (part: unknown) => number,
) {
  let room = most;
  const parts = [value];
  while (parts.length > 0 && room >= 0) {
    const part = parts.pop();
    room -= measure(part);
    if (typeof part === 'object' && part !== null)
      for (const member of Object.values(part)) parts.push(member);
  }
  return room < 0;
}

/**
 * Ends after a few turns of the event loop, because each of them accepts one
 * connection only (libuv, `uv__server_io`).
 */
async function serveOthers() {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
}

/**
 * True when part of the body is unread: it would be parsed as the next request,
 * or time out with a second response.
 */
function isUnread({ raw, headers }: FastifyRequest) {
  const isChunked = headers['transfer-encoding'] !== undefined;
  const hasBody = isChunked || Number(headers['content-length']) > 0;
  return hasBody && !raw.complete;
}

/** The key of a request; the network of a client without one. */
export function holderOf(request: FastifyRequest) {
  return request.call.caller?.id ?? networkOf(request.ip);
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
  readonly #held = new WeakMap<ServerResponse, number>();

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
  ) {
    // A response has no socket while it waits for another one.
    const isCounted = bytes > smallAnswer || response.socket === null;
    const held = isCounted ? bytes : 0;
    const more = held - this.heldBy(response);
    const isFree = isForced || more <= 0;
    if (!isFree && !this.budget.hasRoom(holderOf(request), more))
      throw tooMany('answers');
    this.set(request, response, held);
  }

  /** Counts the bytes of a response, none of one that is closed. */
  set(request: FastifyRequest, response: ServerResponse, bytes: number) {
    const held = response.closed ? 0 : bytes;
    const more = held - this.heldBy(response);
    if (more === 0) return;
    this.budget.add(holderOf(request), more);
    this.#held.set(response, held);
  }

  heldBy(response: ServerResponse) {
    return this.#held.get(response) ?? 0;
  }

  /** Whether the key of a request has more than its share. */
  isOver(request: FastifyRequest) {
    return this.budget.excess(holderOf(request)) > 0;
  }
}

export function tooMany(noun: 'answers' | 'bodies') {
  const message = `Too many large ${noun} are under way; try again shortly.`;
  return new Unavailable(message);
}
