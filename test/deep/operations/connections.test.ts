import { connect, type Socket } from 'node:net';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import { eventually, onPostgres, type ServerProcess } from '../../support/process.ts';
import { closing } from '../../support/raw.ts';
import { endSessions, openSession } from '../../support/session.ts';
import { linesOf } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
const list = (headers = 'Host: store.example\r\n') =>
  `GET /v1/pets HTTP/1.1\r\n${headers}Authorization: Bearer ${key}\r\n\r\n`;

const sockets: Socket[] = [];
const leave = () => sockets.splice(0).forEach((socket) => void socket.destroy());
afterEach(leave);

/** Opens connections and asks something on each. @returns how many are served, and how many have been closed instead */
async function openAll(server: ServerProcess, count: number, ending?: string) {
  const found = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(new URL(server.origin).port), '127.0.0.1').on('error', () => undefined);
      sockets.push(socket);
      socket.write(list(ending));
      return new Promise<string>((done) => {
        socket.once('data', (chunk) => done(`${chunk}`.slice(9, 12))).once('close', () => done('closed'));
      });
    }),
  );
  const statuses = found.filter((status) => status !== 'closed');
  return { statuses, closed: count - statuses.length };
}

/** The connection that asked whether the server is ready is closed. */
const unconnected = (server: MeasuredServer) =>
  eventually(async () => (await server.metrics()).get('animal_store_connections') === 0);

const stateLines = (server: ServerProcess) =>
  linesOf(server.output.stdout)
    .filter(({ msg }) => /connections are/.test(msg))
    .map(({ time, level, pid, host, ...line }) => line);

test('connections beyond MAX_CONNECTIONS are closed, the others are served, and the log says so once', async () => {
  const server = await startMeasured({ ...database.env, BOOTSTRAP_API_KEY: key, MAX_CONNECTIONS: '8' });
  await unconnected(server);
  const { statuses, closed } = await openAll(server, 28);
  expect({ statuses, closed }).toEqual({ statuses: Array(8).fill('200'), closed: 20 });
  expect((await server.metrics()).get('animal_store_connections_refused_total')).toBe(20);
  leave();
  await eventually(async () => (await openAll(server, 1, closing)).closed === 0);
  await eventually(async () => stateLines(server).length === 2);
  const [, ended] = stateLines(server);
  expect(stateLines(server)).toEqual([
    { maxConnections: 8, msg: 'connections are refused' },
    { ms: expect.any(Number), refused: expect.any(Number), msg: 'connections are no longer refused' },
  ]);
  expect(ended?.refused).toBeGreaterThanOrEqual(20);
});

test('more clients than file descriptors cost no request that is served, nor the connections to the database', async () => {
  const openFiles = onPostgres ? 128 : 256;
  const env = { ...database.env, BOOTSTRAP_API_KEY: key, DATABASE_POOL_MAX: '10', LOG_LEVEL: 'debug' };
  const server = await startMeasured(env, { openFiles });
  await unconnected(server);
  const { statuses, closed } = await openAll(server, 2 * openFiles);
  expect(new Set(statuses)).toEqual(new Set(['200']));
  expect(statuses.length).toBeGreaterThanOrEqual(16);
  expect(statuses.length + closed).toBe(2 * openFiles);
  // The pool must open its connections anew while the clients hold theirs.
  if (onPostgres) {
    const session = await openSession(database);
    await endSessions(session);
    await session.end();
  }
  const [survivor] = sockets.filter((socket) => !socket.destroyed);
  await eventually(() => isServed(survivor as Socket));
  expect(server.output.stdout + server.output.stderr).not.toMatch(/EMFILE|ENFILE/);
  leave();
  await eventually(async () => (await send(server.origin, { path: '/readyz' })).status === 200);
  expect((await openAll(server, 10)).closed).toBe(0);
  expect(linesOf(server.output.stdout).filter(({ status }) => status === 500)).toEqual([]);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});

/** Asks on a connection that is open. */
function isServed(socket: Socket): Promise<boolean> {
  return new Promise((done) => {
    socket.once('data', (chunk) => done(`${chunk}`.startsWith('HTTP/1.1 200')));
    socket.write(list());
  });
}
