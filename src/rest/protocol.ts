import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import { answerOnSocket } from './error-handler.ts';

const host = /^(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** What HTTP asks of a server and Node answers without a body, or not at all. Register it after `bearer`. */
export const protocol = fastifyPlugin(async (app: FastifyInstance) => {
  // Node would ask for any body and refuse any other expectation by itself. Here a key comes first.
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    void app.server.emit('request', request, response);
  app.server.on('checkContinue', handle).on('checkExpectation', handle);
  // Node would hang up without a word, and has taken its own error listener off this socket.
  app.server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    answerOnSocket(new StoreError('NOT_IMPLEMENTED', 'CONNECT is for proxies; this is none.'), socket);
  });

  app.addHook('onRequest', ({ raw: { headers, httpVersion } }, _reply, done) => {
    // RFC 9112 section 3.2: none, two (Node has joined them by a comma) and unusable ones are 400.
    const hasHost = headers.host === undefined ? httpVersion !== '1.1' : isAuthority(headers.host);
    const canMeet = headers.expect === undefined || headers.expect.toLowerCase() === '100-continue';
    done(hasHost ? (canMeet ? undefined : unmet()) : hostless());
  });
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const { expect, 'content-length': length } = request.headers;
    const isTooLarge = Number(length) > request.routeOptions.bodyLimit;
    if (expect !== undefined && !isTooLarge) reply.raw.writeContinue();
    done();
  });
});

// Some that look like one are no address: 999.1.1.1, [::::].
export function isAuthority(text: string): boolean {
  return host.test(text) && (!/^[\d[]|\.\d/.test(text) || URL.canParse(`http://${text}`));
}

function hostless(): StoreError {
  return new StoreError('BAD_USER_INPUT', 'The request must have one Host header: a name or address, and a port.');
}

function unmet(): StoreError {
  return new StoreError('EXPECTATION_FAILED', 'No expectation but 100-continue can be met.');
}
