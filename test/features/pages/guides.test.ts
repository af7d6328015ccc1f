import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The guides: README.md and its neighbours, and `docs/`, as pages.
 */

const store = storeForAll();
const get = (path: string) =>
  send(store.origin, { path, headers: { accept: 'text/html' } });

/** The links of a page. */
const targetsOf = (html: string) =>
  [...html.matchAll(/\b(?:href|src|srcset)="([^"]*)"/g)].map(
    ([, to = '']) => to,
  );

/**
 * @returns every address of this service that links lead to from `/guide` on,
 *   with its response
 */
async function walk() {
  const found = new Map<string, { status: number; html: string }>();
  const anchors: URL[] = [];
  const absolute: string[] = [];
  const open = [new URL('/guide', store.origin)];
  for (let url = open.pop(); url; url = open.pop()) {
    if (url.origin !== store.origin) continue;
    if (url.hash) anchors.push(url);
    if (found.has(url.pathname)) continue;
    const { status, text } = await get(url.pathname);
    const isGuide = url.pathname.startsWith('/guide');
    found.set(url.pathname, { status, html: isGuide ? text : '' });
    if (!isGuide) continue;
    open.push(...targetsOf(text).map((target) => new URL(target, url)));
    // Within the service they are relative, so that they work behind a prefix.
    absolute.push(
      ...targetsOf(text).filter((target) =>
        /^(?:\/|(?!https:)\w+:)/.test(target),
      ),
    );
  }
  return { found, anchors, absolute };
}

test('from /guide on, without a key, every link leads to a page or a heading, and every guide is linked', async () => {
  const { found, anchors, absolute } = await walk();
  const dead = [...found]
    .filter(([, { status }]) => status !== 200)
    .map(([path]) => path);
  const headless = anchors.filter(
    ({ pathname, hash }) =>
      !found.get(pathname)?.html.includes(` id="${hash.slice(1)}"`),
  );
  expect({
    dead,
    absolute,
    headless: headless.map(({ href }) => href),
  }).toEqual({
    dead: [],
    absolute: [],
    headless: [],
  });
  const guides = readdirSync('docs').filter((name) => name.endsWith('.md'));
  const all = guides.map((name) => `/guide/${name.replace('.md', '')}`);
  const others = [
    '/guide',
    '/guide/security',
    '/guide/contributing',
    '/guide/changelog',
  ];
  expect(
    [...found.keys()].filter((path) => path.startsWith('/guide')).sort(),
  ).toEqual([...all, ...others].sort());
});

test('a guide may show only its styles and its icon and run its own script, and is revalidated', async () => {
  const { headers, text } = await get('/guide/errors');
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy':
      "default-src 'none';script-src 'self';style-src 'self';img-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  });
  expect(text.match(/<script[^>]*>/g)).toEqual([
    '<script type="module" src="../docs/static/guide.js">',
  ]);
  expect(text).not.toMatch(/<style|style="| on\w+="/);
  const again = await send(store.origin, {
    path: '/guide/errors',
    headers: { 'if-none-match': `${headers.etag}` },
  });
  expect([again.status, again.text]).toEqual([304, '']);
});

test('a guide has the headings and code of its Markdown; diagrams are text; files of the repository are no links', async () => {
  const errors = (await get('/guide/errors')).text;
  expect(errors).toContain('<title>Errors · Animal Store</title>');
  expect(errors).toContain(
    '<h3 id="bad_user_input">BAD_<wbr>USER_<wbr>INPUT</h3>',
  );
  const develop = (await get('/guide/develop')).text;
  expect(develop).toContain('pet.routes.ts → pet.service.ts\n');
  expect(develop).toContain(
    'batches.ts → database.ts → postgres-server.ts → PostgreSQL</code>',
  );
  expect(develop).toContain(
    'commands/\n  → features/: optional parts\n  → feature.ts, and',
  );
  expect(develop).toContain(
    '<span title="packages/engine/src/errors.ts">errors.ts</span>',
  );
  expect(develop).not.toMatch(/flowchart|\]\(/);
});

test('/guide has first steps for a service that runs, and lists the guides once, by their titles', async () => {
  const home = (await get('/guide')).text;
  const [, main = ''] = /<main>([\s\S]*)<\/main>/.exec(home) ?? [];
  expect(
    [...main.matchAll(/<h[12] id="([^"]+)"/g)].map(([, id]) => id),
  ).toEqual(['animal-store', 'first-steps', 'configure', 'deploy']);
  expect(main.match(/<ol>[\s\S]*<\/ol>/)?.[0].match(/<li\b/g)).toHaveLength(3);
  expect(main).toContain('<a href="docs">REST reference</a>');
  expect(main).toContain('-H</span> <span class="string">"Authorization:');
  expect(main).not.toMatch(/npm ci|<img/);
  expect(home.match(/href="guide\/tour"/g)).toHaveLength(1);
  expect(home).toContain('<li><a href="guide/tour">Five minutes</a></li>');
});

test('a page lists its chapters; the contracts are those that are served', async () => {
  const errors = (await get('/guide/errors')).text;
  expect(errors).toContain(
    '<li><a href="#bad_user_input">BAD_<wbr>USER_<wbr>INPUT</a></li>',
  );
  const restGuide = (await get('/guide/rest')).text;
  expect(restGuide).toContain(
    '<a href="../v1/openapi.json">schema/openapi.json</a>',
  );
  expect((await get('/guide/develop')).text).toContain(
    '<li><a href="#where-to-look">Where to look</a></li>',
  );
});

test('code has colours, JSON on one line becomes several, and no digit, no character of it changes', async () => {
  const plain = (html: string) =>
    html
      .replace(/<[^>]+>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
  let parts = '';
  for (const name of readdirSync('docs').filter((one) => one.endsWith('.md'))) {
    const text = await readFile(`docs/${name}`, 'utf8');
    const page = await get(`/guide/${name.replace('.md', '')}`);
    const shown = [...page.text.matchAll(/<pre><code>([\s\S]*?)<\/code>/g)];
    parts += shown.map(([, html]) => html).join('');
    const texts = shown.map(([, html = '']) => plain(html).replace(/\s/g, ''));
    // Those of lists are indented.
    for (const [, language, code = ''] of text.matchAll(
      /^```(\w*)\n([\s\S]*?)^```$/gm,
    ))
      if (language !== 'mermaid')
        expect(texts).toContain(code.replace(/\s/g, ''));
  }
  for (const part of [
    '<span class="name">"code"</span>: <span class="string">"FORBIDDEN"</span>,\n',
    '<span class="number">403</span>\n}',
    '<span class="keyword">import</span>',
    '<span class="option">-H</span>',
    '<span class="comment"># ',
  ])
    expect(parts).toContain(part);
});

test('a guide that does not exist is an unknown path', async () => {
  for (const path of [
    '/guide/none',
    '/guide/images/none.png',
    '/guide/images/',
    '/guide/errors.html',
    '/guide/x/y',
  ]) {
    expect([path, (await rest(store, path, { key: null })).status]).toEqual([
      path,
      401,
    ]);
    expect([path, (await rest(store, path)).status]).toEqual([path, 404]);
  }
});
