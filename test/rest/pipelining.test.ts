import { afterEach, expect, test } from '../support/jest.ts';
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
