import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, expect, test } from '../../../support/jest.ts';
import { storeForAll } from '../../../support/store.ts';

const store = storeForAll();
const sockets: Socket[] = [];
afterAll(() => sockets.forEach((socket) => void socket.destroy()));

/** Sends requests, and reads the status of the first response only. */
async function statusOf(requests: string): Promise<number> {
  const socket = connect(Number(new URL(store.origin).port), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(requests);
  await once(socket, 'readable');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(`${socket.read(12)}`)?.[1]);
}

test('files that clients do not read do not count: all of their responses share one memory', async () => {
  const line = 'GET /docs/static/swagger-ui-bundle.js HTTP/1.1';
  // 34 MB for each connection: far more than the buffers between client and
  // server hold.
  const requests = `${line}\r\nHost: a\r\n\r\n`.repeat(20);
  const { budget } = store.app.unread;
  const excess = budget.excess(undefined);
  const statuses = await Promise.all(
    Array.from({ length: 12 }, () => statusOf(requests)),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
  // The first response of a connection finds room, even if the others count.
  expect(budget.excess(undefined)).toBe(excess);
});
