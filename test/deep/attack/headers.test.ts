import { expect, test } from '../../support/jest.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();

const withKey = (line: string, more = '', body = '', length = body.length) =>
  requestText(
    line,
    `Authorization: Bearer ${store.key}\r\n${more}Content-Length: ${length}\r\n`,
    body,
  );
const json = 'Content-Type: application/json\r\n';

test.each<[status: number, what: string, bytes: () => string | Buffer]>([
  [200, 'a list', () => withKey('GET /v1/pets')],
  [401, 'a list without a key', () => requestText('GET /v1/pets')],
  [404, 'a path that cannot be decoded', () => withKey('GET /%')],
  [405, 'an unsupported method', () => withKey('DELETE /v1/pets')],
  [204, 'OPTIONS', () => withKey('OPTIONS /v1/pets')],
  [
    413,
    'a body that is too large',
    () => withKey('POST /v1/pets', json, '', 1_100_000),
  ],
  [
    415,
    'a body of another type',
    () => withKey('POST /v1/pets', 'Content-Type: text/plain\r\n', 'x'),
  ],
  [
    200,
    'GraphQL',
    () => withKey('POST /graphql', json, '{"query":"{__typename}"}'),
  ],
  [401, 'GraphQL without a key', () => requestText('GET /graphql')],
  [200, 'readiness', () => requestText('GET /readyz')],
  [200, 'the contract', () => requestText('GET /v1/openapi.json')],
  [400, 'bytes that are not HTTP', () => 'hello\r\n\r\n'],
  [400, 'a broken header', () => 'GET /v1/pets HTTP/1.1\r\nHost : a\r\n\r\n'],
  [
    431,
    'a long header',
    () => `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  ],
])(
  'the response %i to %s has the security headers, and none that describes the server',
  async (expected, _what, bytes) => {
    const [response] = await exchange(store, bytes());
    const { status, headers = {} } = response ?? {};
    expect(status).toBe(expected);
    if (status !== 204)
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'strict-transport-security': expect.stringContaining('max-age='),
    });
    for (const name of [
      'x-powered-by',
      'server',
      'via',
      'set-cookie',
      'access-control-allow-origin',
    ]) {
      expect(headers).not.toHaveProperty(name);
    }
  },
);
