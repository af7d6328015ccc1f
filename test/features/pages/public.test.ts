import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dataElement } from '#engine/features/pages/html.js';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * Addresses that need no key: `/`, as a page for browsers and as JSON for other
 * clients, and its links.
 */

const chromium =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const store = storeForAll();
const closed = storeForAll({
  EXPLORER: 'false',
  GRAPHQL_INTROSPECTION: 'false',
});
const withoutExamples = storeForAll();
const behind = storeForAll({
  TRUST_PROXY: '127.0.0.1',
  CORS_ORIGINS: 'https://shop.example',
});

const json = async ({ origin }: { origin: string }, headers = {}) =>
  JSON.parse((await send(origin, { path: '/', headers })).text);
const html = async ({ origin }: { origin: string }, headers = {}) =>
  (await send(origin, { path: '/', headers: { accept: chromium, ...headers } }))
    .text;
const forwardedTo = (host: string, proto: string, prefix: string) => ({
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-host': host,
  'x-forwarded-proto': proto,
  'x-forwarded-prefix': prefix,
});
const linksIn = (page: string) =>
  [...page.matchAll(/<li><a href="([^"]+)"/g)].map(([, href]) => `/${href}`);

describe('a machine', () => {
  test('gets the name, the version and the links', async () => {
    const { origin } = store;
    const { links, ...about } = await json(store);
    expect(about).toEqual({
      name: 'Animal Store',
      version: '1.0.0',
      description:
        'The catalogue of animals offered by a store. Every operation needs an API key.',
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
    expect((await json(behind, forwarded)).links.reference).toBe(
      'https://a.example/store/docs',
    );
    expect(await html(behind, forwarded)).toContain(
      '  https://a.example/store/v1/pets',
    );
    // From an untrusted client these headers are ignored.
    expect((await json(store, forwarded)).links.reference).toBe(
      `${store.origin}/docs`,
    );
  });
});

test('/whoami answers the name and the scope of a key', async () => {
  const reader = { name: 'reader', scope: 'read' } as const;
  const { key } = await store.keys.issue(reader);
  const headers = { authorization: `Bearer ${key}` };
  const answer = await send(store.origin, { path: '/whoami', headers });
  expect(JSON.parse(answer.text)).toEqual(reader);
  expect((await send(store.origin, { path: '/whoami' })).status).toBe(401);
});

test.each([
  [undefined, 'application/json'],
  ['*/*', 'application/json'],
  ['application/json, text/html;q=0.9', 'application/json'],
  ['text/html;q=0', 'application/json'],
  [chromium, 'text/html'],
  ['TEXT/*', 'text/html'],
  ['application/json;q=0.1, */*', 'text/html'],
])('a client that accepts %s gets %s', async (accept, type) => {
  const { status, headers } = await send(store.origin, {
    path: '/',
    headers: accept ? { accept } : {},
  });
  expect([status, headers['content-type']]).toEqual([
    200,
    `${type}; charset=utf-8`,
  ]);
  expect(headers).toMatchObject({
    vary: 'Accept, accept-encoding',
    'cache-control': 'no-cache',
  });
});

test('data in a page cannot end its element', () => {
  expect(
    dataElement('examples', [{ title: '</script><script>alert(1)' }, '<!--']),
  ).toBe(
    '<script type="application/json" id="examples">[{"title":"\\u003c/script>\\u003cscript>alert(1)"},"\\u003c!--"]</script>',
  );
});

describe('the page', () => {
  test('without examples of modules has a query that GraphQL accepts', async () => {
    withoutExamples.app.examples.splice(0);
    const [, body = ''] =
      /-d &#39;(.*)&#39;/.exec(await html(withoutExamples)) ?? [];
    const query = body.replaceAll('&quot;', '"');
    expect(query).toBe('{"query":"{ __typename }"}');
  });

  test('may do nothing but show its own style and its icon, and run its own script', async () => {
    const { headers, text } = await send(store.origin, {
      path: '/',
      headers: { accept: chromium },
    });
    const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none';script-src 'self';style-src 'sha256-${hash}';img-src 'self';connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'`,
    );
    expect(text.match(/<script[^>]*>/g)).toEqual([
      '<script type="module" src="docs/static/front-page.js">',
    ]);
    expect(text).not.toMatch(/\bon\w+=|style="/);
  });

  test('has the links of the JSON, and each works without a key', async () => {
    const paths = linksIn(await html(store));
    const links: Record<string, string> = (await json(store)).links;
    expect(paths).toEqual(
      Object.values(links).map((link) => new URL(link).pathname),
    );
    for (const path of paths) {
      expect([
        path,
        (await send(store.origin, { path, headers: { accept: chromium } }))
          .status,
      ]).toEqual([path, 200]);
    }
  });

  test('shows how to get a key, and how to use it', async () => {
    const page = await html(store);
    expect(page).toContain('npm run store -- keys issue --name me');
    expect(page).toContain(
      `curl -H &quot;Authorization: Bearer $KEY&quot; \\\n  ${store.origin}/v1/pets`,
    );
  });

  test('has no links to pages that are switched off', async () => {
    const paths = [
      '/guide',
      '/guide/errors',
      '/docs',
      '/v1/openapi.json',
      '/livez',
      '/readyz',
    ];
    expect(linksIn(await html(closed))).toEqual(paths);
    const names = [
      'guides',
      'errors',
      'reference',
      'openapi',
      'liveness',
      'readiness',
    ];
    expect(Object.keys((await json(closed)).links)).toEqual(names);
  });

  test.each(['"><script>alert(1)</script>', '/<b>', "/'"])(
    'echoes nothing of the prefix %s',
    async (prefix) => {
      const page = await html(behind, forwardedTo(prefix, prefix, prefix));
      expect(page).not.toContain(prefix);
      expect(page).toContain(`  ${behind.origin}/v1/pets`);
    },
  );
});

test('/schema.graphql is the committed schema, as text', async () => {
  const { headers, text } = await send(store.origin, {
    path: '/schema.graphql',
  });
  expect(headers).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-cache',
  });
  expect(text).toBe(await readFile('schema/schema.graphql', 'utf8'));
});

test('with GRAPHQL_INTROSPECTION=false /schema.graphql is an unknown path', async () => {
  expect((await rest(closed, '/schema.graphql', { key: null })).status).toBe(
    401,
  );
  const nothing = {
    code: 'NOT_FOUND',
    message: 'There is nothing at this address.',
    status: 404,
  };
  expect((await rest(closed, '/schema.graphql')).json).toEqual(nothing);
});

test('/favicon.ico is an icon, and /robots.txt sends crawlers away, for a day', async () => {
  const cached = { 'cache-control': 'public, max-age=86400' };
  const icon = await send(store.origin, { path: '/favicon.ico' });
  expect(icon.headers).toMatchObject({
    'content-type': 'image/vnd.microsoft.icon',
    ...cached,
  });
  expect(icon.text.slice(0, 6)).toBe('\0\0\u0001\0\u0003\0');
  const { headers, text } = await send(store.origin, { path: '/robots.txt' });
  expect(headers).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    ...cached,
  });
  expect(text).toBe('User-agent: *\nDisallow: /\n');
});

test.each([
  ['/docs/', '../docs'],
  ['/graphiql/', '../graphiql'],
  ['/guide/', '../guide'],
  ['/guide/errors/', '../errors'],
])(
  '%s redirects to %s, which works behind any prefix',
  async (path, location) => {
    const { status, headers } = await send(store.origin, { path });
    expect([status, headers.location]).toEqual([308, location]);
  },
);

test('the files of the pages are compressed, and a request with their tag gets 304', async () => {
  for (const name of [
    'swagger-ui-bundle.js',
    'swagger-ui.css',
    'front-page.js',
    'key.js',
  ]) {
    const path = `/docs/static/${name}`;
    const { headers } = await send(store.origin, {
      path,
      headers: { 'accept-encoding': 'br' },
    });
    // Less than 1 KiB is not worth compressing.
    const coding = name === 'key.js' ? undefined : 'br';
    expect(headers).toMatchObject({
      'cache-control': 'no-cache',
      vary: 'accept-encoding',
    });
    expect(headers['content-encoding']).toBe(coding);
    const again = await send(store.origin, {
      path,
      headers: { 'if-none-match': `${headers.etag}` },
    });
    expect([again.status, again.text]).toEqual([304, '']);
  }
});

describe('the bar', () => {
  const pages = {
    Animals: '/',
    Guides: '/guide',
    REST: '/docs',
    GraphiQL: '/graphiql',
    Sandbox: '/graphql',
  };
  const barOf = async ({ origin }: { origin: string }, path: string) => {
    const { text } = await send(origin, {
      path,
      headers: { accept: chromium },
    });
    const [, bar = ''] =
      /<header class="bar">([\s\S]*?)(?:<button|<\/header>)/.exec(text) ?? [];
    const url = new URL(path, origin);
    const links = [...bar.matchAll(/<a href="([^"]*)"([^>]*)>(\w+)<\/a>/g)];
    return {
      links: Object.fromEntries(
        links.map(([, to = '', , title]) => [title, new URL(to, url).pathname]),
      ),
      marked: links.filter(([, , mark]) => mark).map(([, , , title]) => title),
      home: new URL(/class="home" href="([^"]*)"/.exec(bar)?.[1] ?? '?', url)
        .pathname,
      hasIcon: /<svg[^>]*aria-hidden/.test(bar),
    };
  };

  test.each([
    ['/', 'Animals'],
    ['/guide', 'Guides'],
    ['/guide/errors', 'Guides'],
    ['/docs', 'REST'],
    ['/graphiql', 'GraphiQL'],
    ['/graphql', 'Sandbox'],
    ['/none', undefined],
    ['/none/at/all', undefined],
  ])('is the same in the HTML of %s, with %s marked', async (path, title) => {
    expect(await barOf(store, path)).toEqual({
      links: pages,
      marked: title ? [title] : [],
      home: '/',
      hasIcon: true,
    });
  });

  test('has no links to pages that are switched off', async () => {
    const { Animals, Guides, REST } = pages;
    for (const path of ['/', '/guide/errors', '/docs', '/none'])
      expect((await barOf(closed, path)).links).toEqual({
        Animals,
        Guides,
        REST,
      });
  });

  test('leads to addresses below the prefix of a proxy', async () => {
    const forwarded = forwardedTo('a.example', 'https', '/store');
    expect(await html(behind, forwarded)).toContain('<a href="./guide">Guides');
    const { text } = await send(behind.origin, {
      path: '/none/at/all',
      headers: { accept: chromium, ...forwarded },
    });
    expect(text).toContain(
      '<a href="https://a.example/store/guide">Guides</a>',
    );
  });
});
