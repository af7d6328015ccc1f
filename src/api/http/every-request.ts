import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { RequestObserver } from '../../runtime/telemetry/observers.ts';
import { setLatestResponse } from './connections.ts';
import { dataHeaders } from './headers.ts';
import { operationOf } from './operation.ts';
import { RequestCall, type RequestCallOptions } from './request-call.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The deadline of all work for this request, and the size limit of its response. */
    call: RequestCall;
  }
  interface FastifyInstance {
    /** True from the moment when no new clients should come. */
    isDraining: boolean;
    /** Tells proxies and clients to go elsewhere, while requests are still served. */
    startDraining(): void;
  }
}

export interface EveryRequestOptions {
  call: RequestCallOptions;
  observers: RequestObserver[];
}

/** The first and last steps of every request: clock, observers, headers, connection. */
export const everyRequest = fastifyPlugin<EveryRequestOptions>(
  async (app: FastifyInstance, options) => {
    let isDraining = false;
    const startDraining = () => {
      isDraining = true;
    };
    app.decorate('isDraining', { getter: () => isDraining });
    app.decorate('startDraining', startDraining);
    app.addHook('preClose', async () => startDraining());

    app.decorateRequest('call', null as never);
    app.addHook('onRequest', (request, reply, done) => {
      begin(request, reply, options);
      done();
    });
    // Node closes idle connections at once, but keeps one that is serving a request alive after the response. The drain
    // would wait for it until it times out.
    app.addHook('onSend', (request, reply, payload, done) => {
      if (isDraining || isUnread(request)) reply.header('connection', 'close');
      done(null, payload);
    });
  },
  { name: 'every-request' },
);

/** The first step of every request. */
export function begin(request: FastifyRequest, reply: FastifyReply, { call, observers }: EveryRequestOptions): void {
  setLatestResponse(request.raw.socket, reply.raw);
  request.call = new RequestCall(request.raw, call);
  reply.headers(dataHeaders).header('x-request-id', request.id);
  for (const observer of observers) observer.began?.(request, request.call);
  reply.raw.on('close', () => {
    const { call, caller } = request;
    const { arrived, streamedAfter } = call;
    // Whoever has had enough of a stream goes: that is how one ends.
    const isAnswered = reply.raw.writableFinished || streamedAfter !== undefined;
    const end = { milliseconds: performance.now() - arrived, isAnswered, call, caller, route: operationOf(request) };
    for (const observer of observers) observer.ended(request, reply, end);
  });
}

/** True when part of the body is unread: it would be read as the next request, or time out and be answered again. */
export function isUnread({ raw, headers }: FastifyRequest): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  return hasBody && !raw.complete;
}
