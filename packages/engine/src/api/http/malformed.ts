import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { badInput, StoreError } from '../../errors.ts';
import { STATUS_CODES } from './failures.ts';
import { dataHeaders } from './headers.ts';

declare module 'node:net' {
  interface Socket {
    /** The response to the latest request on this connection. */
    latestResponse?: ServerResponse;
    /** Number of requests without a complete response. */
    unanswered?: number;
    /** Node's, undocumented: called for each request. */
    parser?: { onIncoming(): number };
  }
}

/**
 * How long (ms) a connection stays open after its last response, so that the
 * response arrives before the reset.
 */
const linger = 1000;

export const requestTimeout = new StoreError(
  'REQUEST_TIMEOUT',
  'The request took too long to arrive: nothing was done. Send it again.',
);
const ofParser: Record<string, StoreError> = {
  HPE_HEADER_OVERFLOW: new StoreError(
    'REQUEST_HEADER_FIELDS_TOO_LARGE',
    'The headers have more than 16384 bytes.',
  ),
  ERR_HTTP_REQUEST_TIMEOUT: requestTimeout,
};
const malformed = badInput('This is not a well-formed HTTP/1.1 request.');

const failed = new WeakSet<Socket>();

/** `rawPacket` is a Buffer, contrary to Fastify's type. */
type ParserError = NodeJS.ErrnoException & {
  rawPacket?: unknown;
  bytesParsed?: number;
};

/**
 * Answers malformed and incomplete requests, and closes the connection.
 * Observers do not see these, because Node creates no request object, so this
 * function writes the log line.
 */
export function answerMalformed(
  this: FastifyInstance,
  error: ParserError,
  socket: Socket,
) {
  if (error.code === 'ECONNRESET') return void socket.destroy();
  // The parser fails again for all further data.
  if (failed.has(socket)) return;
  failed.add(socket);
  const failure = parserFailure(error, this.allowedMethods.all);
  const answer = () => {
    const { status, code } = failure;
    this.log.info(
      { address: socket.remoteAddress, api: 'other', status, code },
      'malformed request rejected',
    );
    endConnection(socket, responseOf(failure, isInBody ? request.url : ''));
  };
  const response = socket.latestResponse;
  const { req: request, headersSent } = response ?? {};
  const isInBody = request?.complete === false;
  const isAnswered = isInBody && headersSent;
  const isRead = isInBody && request.listenerCount('error') > 0;
  // Its route answers, unless the client has left.
  if (isRead && !isAnswered && error.code !== 'HPE_INVALID_EOF_STATE') {
    // Node calls it after the answer.
    socket.destroySoon = () => endConnection(socket);
    return void request.emit('error', failure);
  }
  // The client would take a second response for that to its next request.
  const end = isAnswered ? () => endConnection(socket) : answer;
  // Malformed data follows a complete request, which is answered first.
  const isLater = isAnswered || request?.complete;
  if (isLater && !response?.closed) response?.once('close', end);
  // Earlier requests are answered first. Then the response has the socket.
  else if (response && !isLater && !response.socket)
    response.once('socket', answer);
  else end();
}

function parserFailure(error: ParserError, methods: Iterable<string>) {
  const { code = '' } = error;
  if (code !== 'HPE_INVALID_METHOD' || !isRequestLine(error))
    return ofParser[code] ?? malformed;
  const known = [...methods].sort().join(', ');
  const message = `This method is not implemented here: there are ${known}.`;
  return new StoreError('NOT_IMPLEMENTED', message);
}

const requestLine = /^[\w!#$%&'*+.^`|~-]{1,40} \S+ HTTP\/1\.[01]\r?\n/;

/**
 * True for a well-formed request line, whose unknown method is a 501 (RFC 9110
 * section 9.1).
 */
function isRequestLine({ rawPacket, bytesParsed = 0 }: ParserError) {
  if (!Buffer.isBuffer(rawPacket)) return false;
  // Complete requests may precede the malformed one.
  const begin = rawPacket.lastIndexOf('\n', Math.max(0, bytesParsed - 1)) + 1;
  const text = rawPacket.toString('latin1', begin, begin + 16_384);
  return requestLine.test(text);
}

/**
 * Formats a response, because there is no response object.
 *
 * @param url of a request whose body has the fault
 */
function responseOf(failure: StoreError, url = '') {
  const { status } = failure;
  const ofRest = failure.toBody();
  const { message, ...extensions } = ofRest;
  const ofGraphQL = { errors: [{ message, extensions }] };
  const isGraphQL = /^\/graphql\b/.test(url);
  const body = JSON.stringify(isGraphQL ? ofGraphQL : ofRest);
  const headers = Object.entries({
    ...dataHeaders,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  const first = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  return `${first}${lines.join('')}\r\n${body}`;
}

/**
 * Ends a connection, and destroys it shortly afterwards. Otherwise a client
 * that keeps sending would hold it open: Node allows half-open connections, and
 * each byte restarts their only timer.
 */
function endConnection(socket: Socket, lastBytes = '') {
  if (socket.writable) socket.end(lastBytes);
  setTimeout(() => socket.destroy(), linger).unref();
}
