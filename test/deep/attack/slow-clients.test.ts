import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { type ServiceNode, type Store, startNode, startStore } from '../../support/store.ts';

/** Who sends slowly, or nothing, loses the connection; others are served meanwhile. The end is asserted, not its time. */
let store: Store;
let node: ServiceNode;
beforeAll(async () => {
  store = await startStore();
  node = await startNode(store, { REQUEST_TIMEOUT_MS: '400', KEEP_ALIVE_TIMEOUT_MS: '300' });
});
afterAll(async () => {
  await node.close();
  await store.close();
});

/** Sends the beginning, then a byte now and then, until the server hangs up; returns what it said. */
function trickle(beginning: string, drip = ''): Promise<string> {
  return new Promise((resolve) => {
    let said = '';
    let timer: NodeJS.Timeout | undefined;
    const socket: Socket = connect(Number(new URL(node.origin).port), '127.0.0.1', () => {
      socket.write(beginning);
      if (drip) timer = setInterval(() => socket.writable && socket.write(drip), 50);
    });
    socket.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      resolve(said);
    });
  });
}

const authorized = () => `Host: a\r\nAuthorization: Bearer ${store.key}\r\n`;
const body = () => `POST /v1/pets HTTP/1.1\r\n${authorized()}Content-Type: application/json\r\n`;

describe('a connection is closed with 408 when', () => {
  const clients: Array<[string, () => string, string]> = [
    ['headers come slowly (slowloris)', () => 'GET /v1/pets HTTP/1.1\r\nHost: a\r\n', 'X-A: b\r\n'],
    ['a header comes slowly', () => 'GET /v1/pets HTTP/1.1\r\nHost: a\r\nX-A: ', 'b'],
    ['the request line comes slowly', () => 'GET /v1/', 'p'],
    ['headers do not end', () => 'GET /v1/pets HTTP/1.1\r\nHost: a\r\n', ''],
    ['a body comes slowly (R.U.D.Y.)', () => `${body()}Content-Length: 100000\r\n\r\n{`, ' '],
    ['a body does not come', () => `${body()}Content-Length: 100\r\n\r\n`, ''],
    ['chunks come slowly', () => `${body()}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  ];
  // All at once: each of them waits for a second.
  const ends: Array<Promise<string>> = [];
  beforeAll(() => {
    ends.push(...clients.map(([_what, beginning, drip]) => trickle(beginning(), drip)));
  });

  test.each(clients.map(([what], at) => [what, at] as const))('%s', async (_what, at) => {
    const said = await ends[at];
    expect(said).toMatch(/^HTTP\/1\.1 408 /);
    expect(said).toContain('"code":"REQUEST_TIMEOUT"');
    expect(said).toMatch(/^connection: close/im);
  });
});

test('a connection that stays idle after an answer is closed', async () => {
  const said = await trickle(`GET /v1/pets HTTP/1.1\r\n${authorized()}\r\n`);
  expect(said).toMatch(/^HTTP\/1\.1 200 OK/);
});

test('a connection that says nothing is closed', async () => {
  expect(await trickle('')).toMatch(/^(?:HTTP\/1\.1 408 .*)?$/s);
});

describe('a client that goes on sending after the last answer, and never closes its side,', () => {
  /** Sends a byte now and then until the server cuts the connection. */
  function holdOpen(beginning: string): Promise<string> {
    return new Promise((resolve) => {
      let said = '';
      const socket = connect({ port: Number(new URL(node.origin).port), host: '127.0.0.1', allowHalfOpen: true });
      const timer = setInterval(() => socket.write('x'), 50);
      socket.write(beginning);
      socket.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        clearInterval(timer);
        resolve(said);
      });
    });
  }

  test.each([
    ['408', 'GET / HTTP/1.1\r\nHost: a\r\nX: '],
    ['400', 'hello\r\n\r\n'],
    ['400', 'POST /v1/pets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n'],
    ['431', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`],
    ['501', 'BREW / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['401', 'POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n'],
  ])('loses its connection after %s', async (status, beginning) => {
    expect(await holdOpen(beginning)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  test('does not hold up the end of the service', async () => {
    const other = await startNode(store, { REQUEST_TIMEOUT_MS: '600000', KEEP_ALIVE_TIMEOUT_MS: '600000' });
    const { port } = new URL(other.origin);
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    // Neither complete nor refused when the end begins.
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nX: ');
    const timer = setInterval(() => socket.write('x'), 50);
    await new Promise((resolve) => other.app.server.once('connection', resolve));
    await other.close();
    await closed;
    clearInterval(timer);
  });
});

test('a hundred slow connections keep no other from being served', async () => {
  const slow = Array.from({ length: 100 }, () => trickle('GET /v1/pets HTTP/1.1\r\nHost: a\r\n', 'X-A: b\r\n'));
  for (let call = 0; call < 20; call += 1) expect((await rest(node, '/v1/pets')).status).toBe(200);
  for (const said of await Promise.all(slow)) expect(said).toMatch(/^HTTP\/1\.1 408 /);
});
