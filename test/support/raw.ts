import { once } from 'node:events';
import { connect } from 'node:net';
import type { Store } from './store.ts';

export interface RawResponse {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string>;
  text: string;
}

/** What every raw request needs; the server then closes the connection, which is how an exchange ends. */
export const closing = 'Host: store.example\r\nConnection: close\r\n';

/**
 * Sends bytes that no HTTP client would, on a connection of their own.
 *
 * @param method `HEAD` when the responses have no bodies, whatever their lengths say
 * @returns every response up to the end of the connection, 100 Continue included.
 */
export async function exchange(
  store: Pick<Store, 'origin'>,
  bytes: string | Buffer,
  method = 'GET',
): Promise<RawResponse[]> {
  const socket = connect(Number(new URL(store.origin).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  // A server that refuses early may close while we still write; what it has answered counts.
  socket.on('error', () => undefined);
  socket.write(bytes);
  await once(socket, 'close');
  return responsesIn(Buffer.concat(chunks), method === 'HEAD');
}

/** A request by its text: method and path, headers ending in CRLF, body. */
export function requestText(line: string, headers = '', body: string | Buffer = ''): Buffer {
  return Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\n${closing}${headers}\r\n`, 'latin1'), Buffer.from(body)]);
}

/**
 * Reads what a server has written to a connection, responses like 100 Continue included.
 *
 * @param areEmpty none has a body, whatever its length says
 * @throws Error when that is not a row of HTTP/1.1 responses
 */
function responsesIn(bytes: Buffer, areEmpty = false): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [line = '', ...fields] = rest.subarray(0, Math.max(end, 0)).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (!status) throw new Error(`not an HTTP response: ${JSON.stringify(rest.subarray(0, 200).toString('latin1'))}`);
    const headers = Object.fromEntries(
      fields.map((field) => [field.split(':', 1)[0]?.toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]),
    );
    const body = rest.subarray(end + 4);
    // A response to HEAD announces a body that does not follow.
    const isEmpty = areEmpty || status < 200 || [204, 304].includes(status) || body.subarray(0, 5).equals(http);
    const length = isEmpty || body.length === 0 ? 0 : Number(headers['content-length'] ?? body.length);
    if (length > body.length) throw new Error(`cut short: ${line} ${body.toString('utf8', 0, 300)}`);
    responses.push({ status, headers, text: body.toString('utf8', 0, length) });
    rest = body.subarray(length);
  }
  return responses;
}

const http = Buffer.from('HTTP/');
