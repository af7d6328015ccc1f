import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of hosts, which end up in links. */

let valid: string;
const store = storeForAll({}, async () => {
  valid = `Authorization: Bearer ${store.key}\r\n`;
  for (const name of ['Rex', 'Bella']) await rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
});

const message = 'The request must have one Host header: a name or address, and a port.';
const badHost = { code: 'BAD_USER_INPUT', message, status: 400 };

describe('a host', () => {
  const withHosts = (lines: string) =>
    exchange(
      store,
      Buffer.from(`GET /v1/pets?limit=1 HTTP/1.1\r\n${lines}Connection: close\r\n${valid}\r\n`, 'latin1'),
    );

  test.each([
    ['shop.example', 'http://shop.example'],
    ['SHOP.example:8080', 'http://SHOP.example:8080'],
    ['127.0.0.1:80', 'http://127.0.0.1:80'],
    ['[::1]:4000', 'http://[::1]:4000'],
    ['shop_1.example.', 'http://shop_1.example.'],
    ['shop.example:', 'http://shop.example:'],
    [':80', 'http://localhost'],
    ['', 'http://localhost'],
  ])('%s leads to links to %s', async (host, origin) => {
    const [response] = await withHosts(`Host: ${host}\r\n`);
    const next = new RegExp(`^<${origin.replace(/[[\].]/g, '\\$&')}/v1/pets\\?limit=1&after=\\d+>; rel="next"$`);
    expect([response?.status, response?.headers.link]).toEqual([200, expect.stringMatching(next)]);
  });

  test.each([
    ['none', ''],
    ['two', 'Host: a.example\r\nHost: b.example\r\n'],
    ['two in one', 'Host: a.example, b.example\r\n'],
    ['one that would break out of a link', 'Host: a>; rel="next", <b\r\n'],
    ['one with a path', 'Host: a.example/b?\r\n'],
    ['one with a user', 'Host: user:password@a.example\r\n'],
    ['one with a space', 'Host: a b\r\n'],
    ['one that is not ASCII', 'Host: sh\xf6p.example\r\n'],
    ['an unclosed address', 'Host: [::1\r\n'],
  ])('%s is refused', async (_what, lines) => {
    const responses = await withHosts(lines);
    expect(responses.map(({ text }) => JSON.parse(text))).toEqual([badHost]);
  });
});

test('a host that would break out of a link does not do so in a refusal either', async () => {
  const request = 'GET /v1/pets/1 HTTP/1.1\r\nHost: a>; rel="x", <b\r\nConnection: close\r\n\r\n';
  const [response] = await exchange(store, request);
  expect(response?.headers.link).toBe('<http://localhost/v1/pets>; rel="successor-version"');
});

test('an address in absolute form leads to links to the path alone', async () => {
  const [response] = await exchange(store, requestText('GET http://store.example/v1/pets?limit=1', valid));
  const link = expect.stringMatching(/^<http:\/\/store\.example\/v1\/pets\?limit=1&after=\d+>; rel="next"$/);
  expect(response).toMatchObject({ status: 200, headers: { link } });
});
