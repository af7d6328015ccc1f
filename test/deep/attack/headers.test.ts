import { type HttpRequest, send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { exchange } from '../../support/raw.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();

const get = (path: string, method = 'GET'): HttpRequest => ({
  method,
  path,
  headers: { authorization: `Bearer ${store.key}` },
});
const post = (path: string, body: string, type = 'application/json'): HttpRequest => {
  const request = get(path, 'POST');
  return { ...request, headers: { ...request.headers, 'content-type': type }, body };
};

describe('security headers are on', () => {
  test.each<[string, number, () => HttpRequest]>([
    ['a list', 200, () => get('/v1/pets')],
    ['a refusal of a key', 401, () => ({ path: '/v1/pets' })],
    ['a path that cannot be decoded', 404, () => get('/%')],
    ['a method that is not possible', 405, () => get('/v1/pets', 'DELETE')],
    ['OPTIONS', 204, () => get('/v1/pets', 'OPTIONS')],
    ['a body that is too large', 413, () => post('/v1/pets', 'x'.repeat(1_100_000))],
    ['a body of another type', 415, () => post('/v1/pets', 'x', 'text/plain')],
    ['GraphQL', 200, () => post('/graphql', '{"query":"{__typename}"}')],
    ['a refusal of GraphQL', 401, () => ({ path: '/graphql' })],
    ['readiness', 200, () => ({ path: '/readyz' })],
    ['the contract', 200, () => ({ path: '/v1/openapi.json' })],
  ])('%s (%i)', async (_what, expected, request) => {
    const { status, headers } = await send(store.origin, request());
    expect(status).toBe(expected);
    if (status !== 204) expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'strict-transport-security': expect.stringContaining('max-age='),
    });
    for (const name of ['x-powered-by', 'server', 'via', 'set-cookie', 'access-control-allow-origin']) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  test.each([
    'hello\r\n\r\n',
    'GET /v1/pets HTTP/1.1\r\nHost : a\r\n\r\n',
    `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  ])('what is answered on a broken connection (%#)', async (bytes) => {
    const [response] = await exchange(store, bytes);
    expect(response?.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'content-type': 'application/json; charset=utf-8',
    });
  });
});

test('the reference may not be framed, and loads scripts and styles from here alone', async () => {
  const { headers, text } = await send(store.origin, { path: '/docs' });
  expect(headers['x-content-type-options']).toBe('nosniff');
  expect(headers['content-security-policy']).toBe(
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  );
  expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
});

test('the explorer echoes nothing', async () => {
  for (const payload of ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>']) {
    const path = `/graphql?query=${encodeURIComponent(payload)}&x=${encodeURIComponent(payload)}`;
    const { text } = await send(store.origin, { path, headers: { accept: 'text/html' } });
    expect(text).not.toContain(payload);
  }
});
