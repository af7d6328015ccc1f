import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { StoreError } from '../../errors.ts';
import { dataHeaders } from './headers.ts';

/** The response to the latest request of a connection. */
export const latest = new WeakMap<Socket, ServerResponse>();

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

interface ParserError extends Error {
  code?: string;
  /** A Buffer, although Fastify's type says otherwise. */
  rawPacket?: unknown;
  bytesParsed?: number;
}

/**
 * Responds to bytes that are not HTTP, or to a request that never ends. There is no request object yet, so no observer
 * sees it: the line in the log is written here.
 */
export function answerBrokenRequest(this: Pick<FastifyInstance, 'log'>, error: ParserError, socket: Socket): void {
  if (error.code === 'ECONNRESET') return void socket.destroy();
  const isUnknown = error.code === 'HPE_INVALID_METHOD' && isRequestLine(error);
  const failure = isUnknown ? unknownMethod : (ofParser[error.code ?? ''] ?? malformed);
  const response = latest.get(socket);
  const isUnderWay = response && !response.writableFinished && !response.destroyed;
  const answer = () => {
    const { status, code } = failure;
    this.log.info({ address: socket.remoteAddress, face: 'other', status, code }, 'answered what is no request');
    answerOnSocket(failure, socket);
  };
  const afterResponse = (work: () => void) => (isUnderWay ? response.once('close', work) : work());
  // The body of an answered request is broken: a second response would be taken for that to another request.
  if (response?.headersSent && !response.req.complete) afterResponse(() => socket.destroySoon());
  // The broken part follows a complete request, which is answered first.
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

/** Responds without a response object, and closes the connection. */
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
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
