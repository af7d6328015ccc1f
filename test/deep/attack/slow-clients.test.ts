import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { startNode, storeForAll } from '../../support/store.ts';

/**
 * A client that sends slowly or nothing loses its connection; others are served
 * meanwhile. Tests assert no time.
 */
const store = storeForAll({
  REQUEST_TIMEOUT_MS: '400',
  KEEP_ALIVE_TIMEOUT_MS: '300',
});

/**
 * Sends the beginning, then `drip` at intervals until the server closes the
 * connection. Returns the response.
 */
async function trickle(
  beginning: string,
  drip = '',
  allowHalfOpen = false,
  { origin } = store as { origin: string },
): Promise<string> {
  const socket = connect({
    port: Number(new URL(origin).port),
    host: '127.0.0.1',
    allowHalfOpen,
  });
  const timer = drip
    ? setInterval(() => socket.writable && socket.write(drip), 50)
    : undefined;
  socket.write(beginning);
  let response = '';
  socket.setEncoding('utf8').on('data', (text) => {
    response += text;
  });
  socket.on('error', () => undefined);
  await new Promise((closed) => socket.once('close', closed));
  clearInterval(timer);
  return response;
}

const authorized = () => `Host: a\r\nAuthorization: Bearer ${store.key}\r\n`;
const body = () =>
  `POST /v1/pets HTTP/1.1\r\n${authorized()}Content-Type: application/json\r\n`;

test('a connection is closed with 408 when headers, the request line, a body or chunks arrive slowly or not at all', async () => {
  // All at once, because each takes about a second.
  const responses = [
    // Slowloris.
    trickle('GET /v1/pets HTTP/1.1\r\nHost: a\r\n', 'X-A: b\r\n'),
    trickle('GET /v1/', 'p'),
    trickle('GET /v1/pets HTTP/1.1\r\nHost: a\r\n'),
    // R.U.D.Y.
    trickle(`${body()}Content-Length: 100000\r\n\r\n{`, ' '),
    trickle(`${body()}Content-Length: 100\r\n\r\n`),
    trickle(`${body()}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'),
  ];
  for (const response of await Promise.all(responses)) {
    expect(response).toMatch(/^HTTP\/1\.1 408 /);
    expect(response).toContain('"code":"REQUEST_TIMEOUT"');
    expect(response).toMatch(/^connection: close/im);
  }
});

test('a connection is closed when the client sends nothing, or nothing more after a response', async () => {
  expect(await trickle('')).toMatch(/^(?:HTTP\/1\.1 408 .*)?$/s);
  const response = await trickle(
    `GET /v1/pets HTTP/1.1\r\n${authorized()}\r\n`,
  );
  expect(response).toMatch(/^HTTP\/1\.1 200 OK/);
});

describe('a client that continues to send after the last response, and never closes its side,', () => {
  test.each([
    ['408', 'GET / HTTP/1.1\r\nHost: a\r\nX: '],
    ['400', 'hello\r\n\r\n'],
    ['431', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`],
    ['501', 'BREW / HTTP/1.1\r\nHost: a\r\n\r\n'],
    [
      '401',
      'POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n',
    ],
  ])('loses its connection after %s', async (status, beginning) => {
    expect(await trickle(beginning, 'x', true)).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} `),
    );
  });

  test('does not delay the end of the service', async () => {
    const other = await startNode(store, {
      REQUEST_TIMEOUT_MS: '600000',
      KEEP_ALIVE_TIMEOUT_MS: '600000',
    });
    const arrival = once(other.app.server, 'connection');
    // The request is neither complete nor refused when the service begins to
    // stop.
    const pending = trickle(
      'GET / HTTP/1.1\r\nHost: a\r\nX: ',
      'x',
      true,
      other,
    );
    await arrival;
    await other.close();
    await pending;
  });
});

test('a hundred slow connections do not keep another from being served', async () => {
  const slow = Array.from({ length: 100 }, () =>
    trickle('GET /v1/pets HTTP/1.1\r\nHost: a\r\n', 'X-A: b\r\n'),
  );
  for (let call = 0; call < 20; call += 1)
    expect((await rest(store, '/v1/pets')).status).toBe(200);
  for (const response of await Promise.all(slow))
    expect(response).toMatch(/^HTTP\/1\.1 408 /);
});
