import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { databaseForAll } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeAll, expect, test } from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import { eventually } from '../../support/process.ts';

const database = databaseForAll();
let server: MeasuredServer;
beforeAll(async () => {
  server = await startMeasured({ ...database.env, DRAIN_TIMEOUT_MS: '600000' });
});

const sockets: Socket[] = [];
const leave = () => sockets.splice(0).forEach((socket) => void socket.destroy());
afterEach(leave);

/** Opens a connection to the port for operators. */
function open(): Socket {
  const socket = connect(Number(new URL(server.operations).port), '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

const put = (length: number) =>
  `PUT /log HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`;

test('idle connections are few, and keep no scrape out for long', async () => {
  for (let opened = 0; opened < 100; opened += 1) await once(open(), 'connect');
  await eventually(async () => sockets.filter((socket) => socket.resume().closed).length >= 68);
  expect((await send(server.origin, { path: '/readyz' })).status).toBe(200);
  const scraped = () => eventually(async () => (await send(server.operations, { path: '/metrics' })).status === 200);
  await scraped();
  leave();
  // By then the server knows that they have gone.
  await scraped();
});

test('a page in a browser reads nothing there by a name of its own, and every answer has the headers of data', async () => {
  const get = (path: string, host: string) => send(server.operations, { path, headers: { host } });
  for (const path of ['/metrics', '/livez', '/readyz', '/log']) {
    for (const host of ['shop.example', 'localhost.example:80', '127.0.0.1.example', '1.example']) {
      expect([host, (await get(path, host)).status]).toEqual([host, 403]);
    }
    for (const host of ['127.0.0.1:9464', '[::1]:9464', 'localhost', 'store-1:9464', 'a.internal']) {
      const { status, headers } = await get(path, host);
      expect([host, status]).toEqual([host, 200]);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cross-origin-resource-policy': expect.any(String),
      });
    }
  }
});

test('a body that is too large is refused before it has come, and half of a request does not hold up the end', async () => {
  const large = open();
  large.write(`${put(1e9)}\r\n`);
  expect(`${await once(large, 'data')}`).toContain('413 Payload Too Large');
  const half = open();
  let answer = '';
  half.on('data', (chunk) => (answer += chunk)).write(`${put(100)}Expect: 100-continue\r\n\r\n`);
  // The request has been taken.
  await once(half, 'data');
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(answer).toBe('HTTP/1.1 100 Continue\r\n\r\n');
});
