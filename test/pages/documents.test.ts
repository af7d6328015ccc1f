import { readFile } from 'node:fs/promises';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** What browsers, crawlers and generators of clients fetch without a key. */

const store = storeForAll();
const closed = storeForAll({ GRAPHQL_INTROSPECTION: 'false' });

test('/schema.graphql is the committed schema, as text', async () => {
  const { status, headers, text } = await send(store.origin, { path: '/schema.graphql' });
  expect(status).toBe(200);
  expect(headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-cache' });
  expect(text).toBe(await readFile('schema/schema.graphql', 'utf8'));
});

test('where the schema is closed nothing is there, like at any unknown path', async () => {
  expect((await rest(closed, '/schema.graphql', { key: null })).status).toBe(401);
  const nothing = { code: 'NOT_FOUND', message: 'There is nothing at this address.', status: 404 };
  expect((await rest(closed, '/schema.graphql')).json).toEqual(nothing);
});

test('/favicon.ico is an icon, and /robots.txt sends crawlers away, for a day', async () => {
  const cached = { 'cache-control': 'public, max-age=86400' };
  const icon = await send(store.origin, { path: '/favicon.ico' });
  expect(icon.headers).toMatchObject({ 'content-type': 'image/vnd.microsoft.icon', ...cached });
  expect(icon.text.slice(0, 6)).toBe('\0\0\u0001\0\u0003\0');
  const { headers, text } = await send(store.origin, { path: '/robots.txt' });
  expect(headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', ...cached });
  expect(text).toBe('User-agent: *\nDisallow: /\n');
});

test.each(['/docs', '/graphiql'])('%s/ leads to %s, behind whatever prefix', async (path) => {
  const { status, headers } = await send(store.origin, { path: `${path}/` });
  expect([status, headers.location]).toEqual([308, `..${path}`]);
});

test('the files of the pages come compressed, and are revalidated, not sent again', async () => {
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css', 'front-page.js', 'key.js']) {
    const path = `/docs/static/${name}`;
    const { headers } = await send(store.origin, { path, headers: { 'accept-encoding': 'br' } });
    // Less than 1 KiB is not worth compressing.
    const coding = name === 'key.js' ? undefined : 'br';
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', vary: 'accept-encoding' });
    expect(headers['content-encoding']).toBe(coding);
    const again = await send(store.origin, { path, headers: { 'if-none-match': `${headers.etag}` } });
    expect([again.status, again.text]).toEqual([304, '']);
  }
});

test('every page leads back to the front page, and has its icon and its colours', async () => {
  for (const path of ['/docs', '/graphql', '/guide']) {
    const { text } = await send(store.origin, { path, headers: { accept: 'text/html' } });
    expect(text).toMatch(/<a class="home" href="\.\/"><img src="docs\/static\/icon\.svg"/);
  }
});
