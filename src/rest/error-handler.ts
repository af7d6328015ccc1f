import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import { ErrorSchema } from './error.schema.ts';
import { toStoreError } from './failures.ts';

/** Answers every failure with the specification's Error body. */
export const errorHandler = fastifyPlugin(async (app: FastifyInstance) => {
  app.addSchema(ErrorSchema);
  app.setErrorHandler(sendError);
  app.addHook('onSend', (request, reply, payload, done) => {
    closeIfUnread(request, reply);
    done(null, payload);
  });
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, response);
  });
});

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  sendFailure(error, request, reply, (failure) => failure.toBody());
}

/** Logs a failure and answers with it, in the words of a face. */
export function sendFailure(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  toBody: (failure: StoreError) => unknown,
  mediaType = 'application/json; charset=utf-8',
): void {
  const failure = toStoreError(error);
  logFailure(failure, request);
  reply.code(failure.status).headers(failure.headers).type(mediaType).serializer(JSON.stringify).send(toBody(failure));
}

/** What failed underneath is an error, with its cause; a refusal, of too many requests for instance, is information. */
export function logFailure(failure: StoreError, request: FastifyRequest): void {
  if (failure.status < 500 || failure.cause === undefined) {
    // Not its message, which may quote what the client sent.
    request.log.debug({ code: failure.code }, 'refused');
  } else {
    request.log.error({ err: failure.cause, code: failure.code }, failure.message);
  }
}

/** What is left of a body would be read as the next request, or time out and be answered once more. */
export function closeIfUnread({ raw, headers }: FastifyRequest, reply: FastifyReply): void {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  if (hasBody && !raw.complete) reply.header('connection', 'close');
}

/** The response to the last request of a connection. */
const latest = new WeakMap<Socket, ServerResponse>();

const byParserCode: Record<string, StoreError> = {
  HPE_HEADER_OVERFLOW: new StoreError('REQUEST_HEADER_FIELDS_TOO_LARGE', 'The headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new StoreError('REQUEST_TIMEOUT', 'The request took too long to arrive.'),
};
const malformed = new StoreError('BAD_USER_INPUT', 'This is not a well-formed HTTP/1.1 request.');
const unknownMethod = new StoreError('NOT_IMPLEMENTED', 'This method is not implemented here.');

interface ParserError extends Error {
  code?: string;
  /** A Buffer, whatever Fastify's type says. */
  rawPacket?: unknown;
  bytesParsed?: number;
}

/** Answers bytes that are no HTTP request, or one that never ends; there is no request to speak of yet. */
export function answerBrokenRequest(error: ParserError, socket: Socket): void {
  if (error.code === 'ECONNRESET') return void socket.destroy();
  const isUnknown = error.code === 'HPE_INVALID_METHOD' && isRequestLine(error);
  const failure = isUnknown ? unknownMethod : (byParserCode[error.code ?? ''] ?? malformed);
  const response = latest.get(socket);
  const isUnderWay = response && !response.writableFinished && !response.destroyed;
  const afterResponse = (work: () => void) => (isUnderWay ? response.once('close', work) : work());
  // What is broken is the body of a request that is answered already: a second answer would be taken for that to another.
  if (response?.headersSent && !response.req.complete) afterResponse(() => socket.destroySoon());
  // What is broken came after a whole request: that one is answered first.
  else if (response?.req.complete) afterResponse(() => answerOnSocket(failure, socket));
  else answerOnSocket(failure, socket);
}

/** A method that nobody knows is 501 (RFC 9110 section 9.1); anything else that is no method is no HTTP. */
function isRequestLine({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  if (!Buffer.isBuffer(rawPacket)) return false;
  // Whole requests may stand before it.
  const begin = rawPacket.lastIndexOf('\n', Math.max(0, bytesParsed - 1)) + 1;
  const text = rawPacket.toString('latin1', begin, begin + 16_384);
  return /^[\w!#$%&'*+.^`|~-]{1,40} \S+ HTTP\/1\.[01]\r?\n/.test(text);
}

/** Answers where there is no response object, and closes the connection. */
export function answerOnSocket(failure: StoreError, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify(failure.toBody());
  socket.end(
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
