import { stock } from '../../support/database-access.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { exchange } from '../../support/raw.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

const json = 'application/json';
/** With a key, unless it is null. */
const get = (path: string, key: string | null = store.key, method = 'GET'): HttpRequest => ({
  method,
  path,
  headers: key === null ? {} : { authorization: `Bearer ${key}` },
});
const post = (path: string, body: string, type = json, key: string | null = store.key): HttpRequest => {
  const request = get(path, key, 'POST');
  return { ...request, headers: { ...request.headers, 'content-type': type }, body };
};

describe('security headers are on', () => {
  test.each<[string, number, () => HttpRequest]>([
    ['a list', 200, () => get('/v1/pets')],
    ['an animal', 200, () => get('/v1/pets/1')],
    ['a creation', 201, () => post('/v1/pets', '{"name":"x","categoryId":1}')],
    ['a refusal', 400, () => get('/v1/pets?limit=0')],
    ['a refusal of a key', 401, () => get('/v1/pets', null)],
    ['an animal that is not there', 404, () => get('/v1/pets/777')],
    ['an unknown path', 404, () => get('/nothing')],
    ['a path that cannot be decoded', 404, () => get('/%')],
    ['a path that cannot be decoded, without a key', 401, () => get('/%', null)],
    ['a method that is not possible', 405, () => get('/v1/pets', store.key, 'DELETE')],
    ['OPTIONS', 204, () => get('/v1/pets', store.key, 'OPTIONS')],
    ['a body that is too large', 413, () => post('/v1/pets', 'x'.repeat(1_100_000))],
    ['a body of another type', 415, () => post('/v1/pets', 'x', 'text/plain')],
    ['what is not implemented', 501, () => get('/v1/store/orders')],
    ['GraphQL', 200, () => post('/graphql', '{"query":"{__typename}"}')],
    ['a refusal of GraphQL', 401, () => post('/graphql', '{}', json, null)],
    ['a document that is refused', 200, () => post('/graphql', '{"query":"{"}')],
    ['liveness', 200, () => get('/livez', null)],
    ['readiness', 200, () => get('/readyz', null)],
    ['the contract', 200, () => get('/v1/openapi.json', null)],
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

describe('the pages', () => {
  test.each([
    ['/graphql', { accept: 'text/html' }],
    ['/graphiql', {}],
    ['/docs', {}],
    ['/', { accept: 'text/html' }],
  ])('%s may not be framed, nor guessed at', async (path, headers) => {
    const { status, headers: answered, text } = await send(store.origin, { path, headers });
    expect(status).toBe(200);
    expect(answered['content-type']).toMatch(/^text\/html/);
    expect(answered['x-content-type-options']).toBe('nosniff');
    const policy = `${answered['content-security-policy']}`;
    expect(policy).toMatch(/frame-ancestors '(?:none|self)'/);
    expect(policy).not.toMatch(/default-src \*|script-src[^;]*(?:'unsafe-eval'|\*)/);
    expect(text).not.toContain(store.key);
  });

  test('of the documents loads scripts and styles from here alone', async () => {
    const { headers, text } = await send(store.origin, { path: '/docs' });
    expect(headers['content-security-policy']).toBe(
      "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
    );
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
  });

  test.each(['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>'])(
    'of the explorer echo nothing of %s',
    async (payload) => {
      const path = `/graphql?query=${encodeURIComponent(payload)}&x=${encodeURIComponent(payload)}`;
      const { text } = await send(store.origin, { path, headers: { accept: 'text/html' } });
      expect(text).not.toContain(payload);
    },
  );
});
