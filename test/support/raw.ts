import { once } from 'node:events';
import { connect } from 'node:net';
import type { Store } from './store.ts';

export interface RawResponse {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string>;
  text: string;
}

/**
 * Headers of every raw request. They make the server close the connection,
 * which ends the exchange.
 */
export const closing = 'Host: store.example\r\nConnection: close\r\n';

/**
 * Sends bytes that no HTTP client would send, on a new connection.
 *
 * @param method `HEAD` when the responses have no bodies despite their
 *   Content-Length
 * @returns every response up to the end of the connection, 100 Continue
 *   included.
 */
export async function exchange(
  store: Pick<Store, 'origin'>,
  bytes: string | Buffer,
  method = 'GET',
): Promise<RawResponse[]> {
  const socket = connect(Number(new URL(store.origin).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  // A server that refuses early may close the connection during the write. Its
  // responses count.
  socket.on('error', () => undefined);
  socket.write(bytes);
  await once(socket, 'close');
  return responsesIn(Buffer.concat(chunks), method === 'HEAD');
}

/** The bytes of a request: method and path, headers ending in CRLF, body. */
export function requestText(
  line: string,
  headers = '',
  body: string | Buffer = '',
): Buffer {
  return Buffer.concat([
    Buffer.from(`${line} HTTP/1.1\r\n${closing}${headers}\r\n`, 'latin1'),
    Buffer.from(body),
  ]);
}

/**
 * Parses the responses on a connection, 100 Continue included.
 *
 * @param areEmpty no response has a body, despite its Content-Length
 * @throws Error when the bytes are not a sequence of HTTP/1.1 responses
 */
function responsesIn(bytes: Buffer, areEmpty = false): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [line = '', ...fields] = rest
      .subarray(0, Math.max(end, 0))
      .toString('latin1')
      .split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (!status)
      throw new Error(
        `not an HTTP response: ${JSON.stringify(rest.subarray(0, 200).toString('latin1'))}`,
      );
    const headers = Object.fromEntries(
      fields.map((field) => [
        field.split(':', 1)[0]?.toLowerCase(),
        field.slice(field.indexOf(':') + 1).trim(),
      ]),
    );
    const body = rest.subarray(end + 4);
    // A response to HEAD announces a body that does not follow.
    const isEmpty =
      areEmpty ||
      status < 200 ||
      [204, 304].includes(status) ||
      body.subarray(0, 5).equals(http);
    const length =
      isEmpty || body.length === 0
        ? 0
        : Number(headers['content-length'] ?? body.length);
    if (length > body.length)
      throw new Error(`cut short: ${line} ${body.toString('utf8', 0, 300)}`);
    responses.push({ status, headers, text: body.toString('utf8', 0, length) });
    rest = body.subarray(length);
  }
  return responses;
}

const http = Buffer.from('HTTP/');
