import { type HttpResponse, send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** The pages and their files as addresses of HTTP. */

const store = storeForAll();

const addresses = [
  ...['/', '/favicon.ico', '/robots.txt', '/docs', '/guide', '/graphiql'],
  ...['/docs/static/swagger-ui.css', '/docs/static/reference.css'],
];

test.each(addresses)(
  '%s needs no key, ignores a wrong one, and answers GET and HEAD only',
  async (path) => {
    const wrong = { authorization: 'Bearer wrong' };
    for (const headers of [{}, wrong]) {
      const whole = await send(store.origin, { path, headers });
      expect(whole.status).toBe(200);
      expect(
        await send(store.origin, { path, headers, method: 'HEAD' }),
      ).toEqual({ ...whole, headers: changing(whole), text: '' });
    }
    const allow = 'GET, HEAD, OPTIONS';
    const options = await rest(store, path, { method: 'OPTIONS' });
    expect([options.status, options.headers.allow]).toEqual([204, allow]);
    const message = `POST is not possible here. Allowed: ${allow}.`;
    const body = '{';
    const posted = await rest(store, path, { method: 'POST', body });
    expect(posted.json).toMatchObject({ message, status: 405 });
    const unknown = await rest(store, path, {
      method: 'POST',
      body,
      key: null,
    });
    expect(unknown.status).toBe(401);
  },
);

test.each([
  ...['/docs/../v1/pets', '/docs/..%2fv1/pets', '/docs/.env'],
  ...['/docs/%2e%2e/v1/pets', '/docs/%252e%252e/v1/pets'],
  ...['/docs/static/nothing.css', '/docs/static/index.html'],
  ...['/docs/static/%00', '/docs/static//etc/passwd'],
  ...['/docs/static/../../package.json', '/docs/static/.git/config'],
  ...['/docs/static/..%2f..%2fpackage.json'],
  ...['/docs/static/%2e%2e/%2e%2e/package.json'],
  ...['/docs/static/..%5c..%5cpackage.json'],
])(
  '%s leaves the folder of the pages: 404 with a key, 401 without',
  async (path) => {
    const statusOf = async (headers: string) => {
      const [response] = await exchange(
        store,
        requestText(`GET ${path}`, headers),
      );
      return JSON.parse(response?.text ?? '').status;
    };
    expect([
      await statusOf(`Authorization: Bearer ${store.key}\r\n`),
      await statusOf(''),
    ]).toEqual([404, 401]);
  },
);

const json = 'application/json; charset=utf-8';
const html = 'text/html; charset=utf-8';

test.each([
  ['text/html', html],
  ['text/html;level=1, application/json;q=0.9', html],
  ['application/json, text/html;q=0.9', json],
  ['application/json;a="text/html"', json],
  ['', json],
  ['*', json],
  // It is ignored, because parsing it would take tens of milliseconds.
  [`${'a/b,'.repeat(3000)}text/html`, json],
])('/ with Accept: %j', async (accept, type) => {
  const { status, headers } = await send(store.origin, {
    path: '/',
    headers: { accept },
  });
  expect([status, headers['content-type']]).toEqual([200, type]);
});

test.each([
  ['range', 'bytes=0-9'],
  ['range', 'bytes=99999999-'],
  ['if-match', '"other"'],
])('a file is sent whole, also with %s: %s', async (name, value) => {
  const [path] =
    /graphiql\/\w+\/page\.css/.exec(
      (await send(store.origin, { path: '/graphiql' })).text,
    ) ?? [];
  const whole = await send(store.origin, { path: `/${path}` });
  expect(
    await send(store.origin, { path: `/${path}`, headers: { [name]: value } }),
  ).toEqual({ ...whole, headers: changing(whole) });
});

/** The headers of another answer with the same content. */
const changing = ({ headers }: HttpResponse) => ({
  ...headers,
  date: expect.any(String),
  'x-request-id': expect.any(String),
});

test.each([
  ...['swagger-ui-bundle.js', 'swagger-ui.css', 'reference.js'].map(
    (name) => `/docs/static/${name}`,
  ),
  ...['/docs', '/guide/develop'],
])('%s is compressed once per coding', async (path) => {
  const sent = async (coding: string) => {
    const headers = { 'accept-encoding': coding };
    const response = await store.app.inject({ url: path, headers });
    expect(response.headers['content-length']).toBe(
      `${response.rawPayload.length}`,
    );
    return [response.headers['content-encoding'], response.rawPayload] as const;
  };
  const [, plain] = await sent('identity');
  for (const coding of ['gzip', 'br', 'zstd']) {
    const [used, first] = await sent(coding);
    expect([used, await sent(coding)]).toEqual([coding, [coding, first]]);
    expect(first.length).toBeLessThan(plain.length / 2);
  }
});

test('the reference cannot be framed, and loads scripts and styles only from its own origin', async () => {
  const { headers, text } = await send(store.origin, { path: '/docs' });
  expect(headers['x-content-type-options']).toBe('nosniff');
  expect(headers['content-security-policy']).toBe(
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  );
  expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
});
