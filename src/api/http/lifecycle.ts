import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { networkOf } from '../../access/limits/network.ts';
import { Call } from '../../call.ts';
import type { RequestEnd, RequestObserver } from '../../runtime/observers.ts';
import { SharedBudget } from '../../shared-budget.ts';
import { sendError } from './failures.ts';
import { dataHeaders } from './headers.ts';
import { isRead } from './negotiation.ts';
import { largeBodyBytes, Unread } from './overload.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What handlers pass to services, and observers log and measure. */
    call: Call;
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

/**
 * The first and last steps of every request: deadline, observers, headers,
 * failures, and the end of its connection.
 *
 * @param timeout in milliseconds
 */
export function lifecycle(
  app: FastifyInstance,
  timeout: number,
  observers: readonly RequestObserver[],
): void {
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

  const pipelined = new SharedBudget(maxPipelined);
  app.decorateRequest('call', null as never);
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    const before = socket.unanswered ?? 0;
    socket.unanswered = before + 1;
    const isPipelined = before > 0;
    const network = isPipelined ? networkOf(socket.remoteAddress ?? '') : '';
    const isTooMany =
      before >= maxUnanswered || (isPipelined && !pipelined.take(network));
    if (isTooMany) return cutOff(socket);
    const call = new Call(timeout, socket);
    call.isWrite = !isRead(request.method);
    request.call = call;
    socket.latestResponse = reply.raw;
    reply.headers(dataHeaders).header('x-request-id', request.id);
    active.count += 1;
    for (const observer of observers) observer.began?.(request);
    reply.raw.on('close', () => {
      active.count -= 1;
      socket.unanswered = (socket.unanswered ?? 1) - 1;
      if (isPipelined) pipelined.add(network, -1);
      const end = requestEnd(request, reply);
      for (const observer of observers) observer.ended(request, reply, end);
    });
    done();
  });

  const unread = new Unread();
  app.decorate('unread', unread);
  // Large answers are made one after another, and small requests are served in
  // between. Of the answers that the budget refuses, one is in memory.
  let pause: Promise<void> | undefined;
  const proceed = (next: () => void): void => {
    if (pause) void pause.then(() => proceed(next));
    else next();
  };
  // A callback, because a refusal must be written before the parser sees what
  // follows on its connection.
  app.addHook('preSerialization', (_request, _reply, payload, done) => {
    // A character has up to six bytes in JSON.
    const mustWait = pause && roomAfter(payload, largeBodyBytes / 6) < 0;
    if (mustWait) proceed(() => done(null, payload));
    else done(null, payload);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    // When it drains, Node closes only idle connections, and would wait for the
    // keep-alive timeout of active ones.
    if (app.isDraining || isUnread(request))
      reply.header('connection', 'close');
    // Also for a GraphQL operation that needs another method.
    if (reply.statusCode === 405)
      reply.header('allow', `${app.allowedMethods.of(request)?.join(', ')}`);
    // A Buffer is a file, which all of its answers share.
    if (typeof payload !== 'string') return done(null, payload);
    const bytes = Buffer.byteLength(payload);
    const isSmallError = reply.statusCode >= 400 && bytes < 1024;
    unread.hold(request, reply, bytes, request.call.isWrite || isSmallError);
    if (bytes > largeBodyBytes)
      pause ??= serveOthers().then(() => {
        pause = undefined;
      });
    done(null, payload);
  });
}

function requestEnd(
  { call, raw, routeOptions: { url, schema } }: FastifyRequest,
  { raw: response }: FastifyReply,
): RequestEnd {
  // A stream normally ends when its client disconnects.
  const isStream = call.streamedAfter !== undefined;
  // A request that the service makes itself passes no network.
  const isOwn = 'isLightMyRequest' in raw;
  const { operationId: id } = (schema ?? {}) as { operationId?: string };
  const other = url === '/graphql' ? 'graphql' : 'other';
  return {
    milliseconds: performance.now() - call.arrived,
    isAnswered: response.writableFinished || isStream || isOwn,
    api: id ? 'rest' : other,
    id,
  };
}

/**
 * Ends after a few turns of the event loop, because each of them accepts one
 * connection only (libuv, `uv__server_io`).
 */
async function serveOthers(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
}

/**
 * @returns what the texts in a value leave of `room` characters; negative when
 *   they are longer
 */
function roomAfter(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length;
  if (typeof value !== 'object' || value === null) return room;
  return Object.values(value).reduce<number>(
    (left, member) => (left < 0 ? left : roomAfter(member, left)),
    room,
  );
}

/**
 * Closes a connection (RFC 9112 section 9.3.2 allows it), because refusals
 * would wait in memory, too.
 */
function cutOff(socket: Socket): void {
  // Node destroys the socket after the parser is done. Its requests until then
  // would fill the memory.
  if (socket.parser) socket.parser.onIncoming = () => 0;
  socket.destroy();
}

/**
 * True when part of the body is unread: it would be parsed as the next request,
 * or time out with a second response.
 */
function isUnread({ raw, headers }: FastifyRequest): boolean {
  const hasBody =
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length']) > 0;
  return hasBody && !raw.complete;
}
