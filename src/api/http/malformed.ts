import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { StoreError } from '../../errors.ts';
import { endConnection, latestResponse } from './connections.ts';
import { dataHeaders } from './headers.ts';

const ofParser: Record<string, StoreError> = {
  HPE_HEADER_OVERFLOW: new StoreError('REQUEST_HEADER_FIELDS_TOO_LARGE', 'The headers have more than 16384 bytes.'),
  ERR_HTTP_REQUEST_TIMEOUT: new StoreError(
    'REQUEST_TIMEOUT',
    'The request took too long to arrive: nothing was done. Send it again.',
  ),
};
const malformed = new StoreError('BAD_USER_INPUT', 'This is not a well-formed HTTP/1.1 request.');
const unknownMethod = new StoreError(
  'NOT_IMPLEMENTED',
  'This method is not implemented here: there are GET, HEAD, OPTIONS and POST.',
);

const failed = new WeakSet<Socket>();

interface ParserError extends Error {
  code?: string;
  /** A Buffer, although Fastify's type says otherwise. */
  rawPacket?: unknown;
  bytesParsed?: number;
}

/**
 * Answers bytes that are not HTTP, and requests that never end, and closes the connection. There is no request object,
 * so no observer sees it: the log line is written here.
 */
export function answerMalformed(this: Pick<FastifyInstance, 'log'>, error: ParserError, socket: Socket): void {
  if (error.code === 'ECONNRESET') return void socket.destroy();
  // The parser fails again at whatever the client sends next.
  if (failed.has(socket)) return;
  failed.add(socket);
  const isUnknown = error.code === 'HPE_INVALID_METHOD' && isRequestLine(error);
  const failure = isUnknown ? unknownMethod : (ofParser[error.code ?? ''] ?? malformed);
  const response = latestResponse(socket);
  const isActive = response && !response.writableFinished && !response.destroyed;
  const answer = () => {
    const { status, code } = failure;
    this.log.info({ address: socket.remoteAddress, face: 'other', status, code }, 'malformed request rejected');
    answerOnSocket(failure, socket);
  };
  const afterResponse = (work: () => void) => (isActive ? response.once('close', work) : work());
  // The body of an answered request is malformed: a second answer would be taken for that to another request.
  if (response?.headersSent && !response.req.complete) afterResponse(() => endConnection(socket));
  // The malformed part follows a complete request, which is answered first.
  else if (response?.req.complete) afterResponse(answer);
  else answer();
}

/** An unknown method is 501 (RFC 9110 section 9.1); anything else that is not a method is not HTTP. */
function isRequestLine({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  if (!Buffer.isBuffer(rawPacket)) return false;
  // Complete requests may precede it.
  const begin = rawPacket.lastIndexOf('\n', Math.max(0, bytesParsed - 1)) + 1;
  const text = rawPacket.toString('latin1', begin, begin + 16_384);
  return /^[\w!#$%&'*+.^`|~-]{1,40} \S+ HTTP\/1\.[01]\r?\n/.test(text);
}

/** Answers without a response object, and closes the connection. */
function answerOnSocket(failure: StoreError, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify(failure.toBody());
  const headers = Object.entries({
    ...dataHeaders,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  const head = [
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}`,
    ...headers.map((pair) => pair.join(': ')),
  ];
  endConnection(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
}
