import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { latest } from './broken-requests.ts';
import { dataHeaders } from './headers.ts';
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

/** The first and last steps of every request: clock, log line, headers, connection. */
export const everyRequest = fastifyPlugin<RequestCallOptions>(
  async (app: FastifyInstance, call) => {
    let isDraining = false;
    const startDraining = () => {
      isDraining = true;
    };
    app.decorate('isDraining', { getter: () => isDraining });
    app.decorate('startDraining', startDraining);
    app.addHook('preClose', async () => startDraining());

    app.decorateRequest('call', null as never);
    app.addHook('onRequest', (request, reply, done) => {
      begin(request, reply, call);
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
export function begin(request: FastifyRequest, reply: FastifyReply, options: RequestCallOptions): void {
  const arrived = performance.now();
  latest.set(request.raw.socket, reply.raw);
  request.call = new RequestCall(request.raw, reply.raw, options);
  reply.headers(dataHeaders).header('x-request-id', request.id);
  reply.raw.once('close', () => {
    const ms = Math.round((performance.now() - arrived) * 100) / 100;
    const fields = { req: request, status: reply.statusCode, ms, key: request.caller?.id, node: request.call.node };
    if (reply.raw.writableFinished) request.log.info(fields, 'answered');
    else request.log.info({ ...fields, status: undefined }, 'aborted by the client');
  });
}

/** True when part of the body is unread: it would be read as the next request, or time out and be answered again. */
export function isUnread({ raw, headers }: FastifyRequest): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  return hasBody && !raw.complete;
}
