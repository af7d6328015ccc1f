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

function responsesIn(bytes: Buffer, areEmpty: boolean): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const [head = '', ...others] = rest.subarray(0, rest.indexOf('\r\n\r\n')).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      others.map((line) => [line.split(':', 1)[0]?.toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const start = rest.indexOf('\r\n\r\n') + 4;
    const end = start + (areEmpty ? 0 : Number(headers['content-length'] ?? 0));
    responses.push({ status: Number(head.split(' ')[1]), headers, text: rest.subarray(start, end).toString() });
    rest = rest.subarray(end);
  }
  return responses;
}
