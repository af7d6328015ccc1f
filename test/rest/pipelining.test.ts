import { once } from 'node:events';
import { afterEach, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { exchange } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/**
 * Requests on one connection that do not wait for each other's responses (RFC
 * 9112 section 9.3.2).
 */

const store = storeForAll();

let requests = 0;
const count = () => {
  requests += 1;
};
afterEach(() => {
  store.app.server.off('request', count);
  requests = 0;
});

const pipelined = (length: number, more = '') => {
  store.app.server.on('request', count);
  const request = (headers = '') =>
    `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;
  return exchange(
    store,
    request(more).repeat(length - 1) + request(`${more}Connection: close\r\n`),
  );
};

test('fifty are answered in their order', async () => {
  const responses = await pipelined(50);
  expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(401));
});

test('more than fifty without a response close the connection, and the service sees none of the others', async () => {
  const responses = await pipelined(1500);
  expect(responses.length).toBeLessThanOrEqual(50);
  expect(requests).toBe(51);
  expect(store.app.activeRequests.count).toBe(0);
});

test('a body that is late is refused after the answers of earlier requests', async () => {
  const { app, database } = store;
  const { rows } = database;
  const begin = Promise.withResolvers<void>();
  database.rows = async (...statement) => {
    await begin.promise;
    return rows.apply(database, statement) as never;
  };
  const connected = once(app.server, 'connection');
  const body = '{"name":"Rex","categoryId":1}';
  const headers = `Authorization: Bearer ${store.key}\r\nContent-Type: application/json\r\n`;
  const request = `POST /v1/pets HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${body.length}\r\n\r\n`;
  const answers = exchange(store, request + body + request);
  const [socket] = await connected;
  await eventually(async () => app.activeRequests.count === 2);
  const late = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  app.server.emit('clientError', late, socket);
  begin.resolve();
  const statuses = (await answers).map(({ status }) => status);
  database.rows = rows;
  expect(statuses).toEqual([201, 408]);
});
