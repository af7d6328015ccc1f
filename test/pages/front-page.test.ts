import { createHash } from 'node:crypto';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** `/`, as a page for browsers and as JSON for everyone else. */

const chromium = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const store = storeForAll();
const closed = storeForAll({ EXPLORER: 'false', GRAPHQL_INTROSPECTION: 'false' });
const behind = storeForAll({ TRUST_PROXY: '127.0.0.1', CORS_ORIGINS: 'https://shop.example' });

const json = async ({ origin }: { origin: string }, headers = {}) =>
  JSON.parse((await send(origin, { path: '/', headers })).text);
const html = async ({ origin }: { origin: string }, headers = {}) =>
  (await send(origin, { path: '/', headers: { accept: chromium, ...headers } })).text;
const forwardedTo = (host: string, proto: string, prefix: string) => ({
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-host': host,
  'x-forwarded-proto': proto,
  'x-forwarded-prefix': prefix,
});
const linksIn = (page: string) => [...page.matchAll(/<li><a href="([^"]+)"/g)].map(([, href]) => `/${href}`);

describe('a machine', () => {
  test('gets the name, the version and the links', async () => {
    const { origin } = store;
    const { links, ...about } = await json(store);
    expect(about).toEqual({
      name: 'Animal Store',
      version: '1.0.0',
      description: 'The catalogue of animals offered by a store. Every operation needs an API key.',
    });
    expect(links).toMatchObject({
      reference: `${origin}/docs`,
      openapi: `${origin}/v1/openapi.json`,
      sandbox: `${origin}/graphql`,
      schema: `${origin}/schema.graphql`,
      liveness: `${origin}/livez`,
      readiness: `${origin}/readyz`,
    });
  });

  test('behind a proxy that it trusts gets the addresses that it can reach', async () => {
    const forwarded = forwardedTo('a.example', 'https', '/store');
    expect((await json(behind, forwarded)).links.reference).toBe('https://a.example/store/docs');
    expect(await html(behind, forwarded)).toContain('  https://a.example/store/v1/pets');
    // From anyone else these headers count for nothing.
    expect((await json(store, forwarded)).links.reference).toBe(`${store.origin}/docs`);
  });
});

test.each([
  [undefined, 'application/json'],
  ['*/*', 'application/json'],
  ['application/json, text/html;q=0.9', 'application/json'],
  ['text/html;q=0', 'application/json'],
  [chromium, 'text/html'],
  ['TEXT/*', 'text/html'],
  ['application/json;q=0.1, */*', 'text/html'],
])('who accepts %s gets %s', async (accept, type) => {
  const { status, headers } = await send(store.origin, { path: '/', headers: accept ? { accept } : {} });
  expect([status, headers['content-type']]).toEqual([200, `${type}; charset=utf-8`]);
  expect(headers).toMatchObject({ vary: 'Accept, accept-encoding', 'cache-control': 'no-cache' });
});

describe('the page', () => {
  test('may do nothing but show its own style and its icon, and run its own script', async () => {
    const { headers, text } = await send(store.origin, { path: '/', headers: { accept: chromium } });
    const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none';script-src 'self';style-src 'sha256-${hash}';img-src 'self';connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'`,
    );
    expect(text.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="docs/static/front-page.js">']);
    expect(text).not.toMatch(/\bon\w+=|style="/);
  });

  test('has the links that a machine gets, and each leads somewhere without a key', async () => {
    const paths = linksIn(await html(store));
    const links: Record<string, string> = (await json(store)).links;
    expect(paths).toEqual(Object.values(links).map((link) => new URL(link).pathname));
    for (const path of paths) {
      expect([path, (await send(store.origin, { path, headers: { accept: chromium } })).status]).toEqual([path, 200]);
    }
  });

  test('says how to get a key, and how to use it', async () => {
    const page = await html(store);
    expect(page).toContain('npm run store -- keys issue --name me');
    expect(page).toContain(`curl -H &quot;Authorization: Bearer $KEY&quot; \\\n  ${store.origin}/v1/pets`);
  });

  test('does not lead to what is closed', async () => {
    const paths = ['/guide', '/guide/errors', '/docs', '/v1/openapi.json', '/livez', '/readyz'];
    expect(linksIn(await html(closed))).toEqual(paths);
    const names = ['guides', 'errors', 'reference', 'openapi', 'liveness', 'readiness'];
    expect(Object.keys((await json(closed)).links)).toEqual(names);
  });

  test.each(['"><script>alert(1)</script>', '/<b>', "/'"])('echoes nothing of the prefix %s', async (prefix) => {
    const page = await html(behind, forwardedTo(prefix, prefix, prefix));
    expect(page).not.toContain(prefix);
    expect(page).toContain(`  ${behind.origin}/v1/pets`);
  });
});
