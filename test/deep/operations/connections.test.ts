// runs: embedded, postgres

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import {
  bootstrapKey,
  eventually,
  onPostgres,
  type ServerProcess,
} from '../../support/process.ts';
import { linesOf, untilLogged } from '../../support/process-log.ts';
import { closing } from '../../support/raw.ts';
import { endSessions, openSession } from '../../support/session.ts';

const database = databaseForEach();

const sockets: Socket[] = [];
const leave = () =>
  sockets.splice(0).forEach((socket) => void socket.destroy());
afterEach(leave);

function open(origin: string): Socket {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1').on(
    'error',
    () => undefined,
  );
  sockets.push(socket);
  return socket;
}

/**
 * Requests a list. @returns the status, or 'closed' when the connection ends
 * without a response
 */
function list(
  socket: Socket,
  headers = 'Host: store.example\r\n',
): Promise<string> {
  socket.write(
    `GET /v1/pets HTTP/1.1\r\n${headers}Authorization: Bearer ${bootstrapKey}\r\n\r\n`,
  );
  return new Promise((done) => {
    socket
      .once('data', (chunk) => done(`${chunk}`.slice(9, 12)))
      .once('close', () => done('closed'));
  });
}

/**
 * Requests a list on each of many new connections. @returns the statuses, and
 * the number of closed connections
 */
async function openAll(server: ServerProcess, count: number, headers?: string) {
  const results = await Promise.all(
    Array.from({ length: count }, () => list(open(server.origin), headers)),
  );
  const statuses = results.filter((status) => status !== 'closed');
  return { statuses, closed: count - statuses.length };
}

/** Waits until the connection of the readiness checks is closed. */
const unconnected = (server: MeasuredServer) =>
  eventually(
    async () => (await server.metrics()).get('animal_store_connections') === 0,
  );

test('connections beyond MAX_CONNECTIONS are closed and the others are served; the log has one line at the start and one at the end', async () => {
  const server = await startMeasured({
    ...database.env,
    MAX_CONNECTIONS: '8',
    TRUST_PROXY: '10.0.0.1',
  });
  await unconnected(server);
  expect(await openAll(server, 28)).toEqual({
    statuses: Array(8).fill('200'),
    closed: 20,
  });
  leave();
  await eventually(
    async () => (await openAll(server, 1, closing)).closed === 0,
  );
  const [ended] = await untilLogged(
    server,
    'connections are no longer refused',
  );
  const lines = linesOf(server.output.stdout).filter(({ msg }) =>
    /connections are/.test(msg),
  );
  expect(lines.map(({ time, level, pid, host, ...line }) => line)).toEqual([
    { maxConnections: 8, msg: 'connections are refused' },
    {
      ms: expect.any(Number),
      refused: expect.any(Number),
      msg: 'connections are no longer refused',
    },
  ]);
  expect(ended?.refused).toBeGreaterThanOrEqual(20);
});

test('with more clients than file descriptors no accepted request fails, and the pool can reconnect to the database', async () => {
  const openFiles = onPostgres ? 128 : 256;
  const env = {
    ...database.env,
    DATABASE_POOL_MAX: '10',
    LOG_LEVEL: 'debug',
    // Behind a proxy one network may have all connections.
    TRUST_PROXY: '10.0.0.1',
  };
  const server = await startMeasured(env, { openFiles });
  await unconnected(server);
  const { statuses, closed } = await openAll(server, 2 * openFiles);
  expect(new Set(statuses)).toEqual(new Set(['200']));
  expect(statuses.length).toBeGreaterThanOrEqual(16);
  expect(statuses.length + closed).toBe(2 * openFiles);
  // The pool must reopen its connections while the clients hold theirs.
  if (onPostgres) {
    const session = await openSession(database);
    await endSessions(session);
    await session.end();
  }
  const [survivor] = sockets.filter((socket) => !socket.destroyed);
  await eventually(async () => (await list(survivor as Socket)) === '200');
  expect(server.output.stdout + server.output.stderr).not.toMatch(
    /EMFILE|ENFILE/,
  );
  leave();
  await eventually(
    async () => (await send(server.origin, { path: '/readyz' })).status === 200,
  );
  expect((await openAll(server, 10)).closed).toBe(0);
  expect(
    linesOf(server.output.stdout).filter(({ status }) => status === 500),
  ).toEqual([]);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});

const put = (length: number) =>
  `PUT /log HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`;

test('idle connections to the port for operators are limited, and the next one is served soon', async () => {
  const server = await startMeasured(database.env);
  for (let opened = 0; opened < 100; opened += 1)
    await once(open(server.operations), 'connect');
  await eventually(
    async () => sockets.filter((socket) => socket.resume().closed).length >= 68,
  );
  expect((await send(server.origin, { path: '/readyz' })).status).toBe(200);
  const served = () =>
    eventually(
      async () =>
        (await send(server.operations, { path: '/livez' })).status === 200,
    );
  await served();
  leave();
  // Once it answers, the server knows that the clients have disconnected.
  await served();
});

test('the port for operators refuses the host names of web pages, and a large body before it arrives; half a request does not delay the shutdown', async () => {
  const server = await startMeasured({
    ...database.env,
    DRAIN_TIMEOUT_MS: '600000',
  });
  const get = (path: string, host: string) =>
    send(server.operations, { path, headers: { host } });
  const foreign = [
    'shop.example',
    'localhost.example:80',
    '127.0.0.1.example',
    '1.example',
  ];
  for (const path of ['/livez', '/readyz', '/log']) {
    for (const host of [...foreign, '999.999.999.999', '[::::]']) {
      expect([host, (await get(path, host)).status]).toEqual([host, 403]);
    }
    for (const host of [
      '127.0.0.1:9464',
      '[::1]:9464',
      'localhost',
      'store-1:9464',
      'a.internal',
    ]) {
      const { status, headers } = await get(path, host);
      expect([host, status]).toEqual([host, 200]);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cross-origin-resource-policy': expect.any(String),
      });
    }
  }

  const large = open(server.operations);
  large.write(`${put(1e9)}\r\n`);
  expect(`${await once(large, 'data')}`).toContain('413 Payload Too Large');
  const half = open(server.operations);
  let response = '';
  half
    .on('data', (chunk) => (response += chunk))
    .write(`${put(100)}Expect: 100-continue\r\n\r\n`);
  // The server has accepted the request.
  await once(half, 'data');
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(response).toBe('HTTP/1.1 100 Continue\r\n\r\n');
});
