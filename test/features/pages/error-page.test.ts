import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * A browser gets a page for an unknown address instead of an Error body, with
 * the same status and headers.
 */

const store = storeForAll();
const chromium =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const json = 'application/json; charset=utf-8';
const html = 'text/html; charset=utf-8';

async function typeOf(
  path: string,
  {
    key,
    method,
    accept = chromium,
  }: { key?: string; method?: string; accept?: string } = {},
) {
  const headers = { accept, ...(key && { authorization: `Bearer ${key}` }) };
  const { status, headers: received } = await send(store.origin, {
    path,
    headers,
    ...(method && { method }),
  });
  return [status, received['content-type']];
}

test('without a key every unknown address is the same page, with 401 and its headers', async () => {
  const [one, other] = await Promise.all(
    ['/none', '/guide/none/at/all?x=<b>'].map((path) =>
      send(store.origin, { path, headers: { accept: chromium } }),
    ),
  );
  expect(one).toMatchObject({
    status: 401,
    headers: {
      'content-type': html,
      'www-authenticate': 'Bearer',
      'cache-control': 'no-store',
      vary: 'Accept',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none';style-src 'sha256-/,
      ),
    },
  });
  expect(one?.text).toContain(
    '<p>Without a valid API key, nothing is shown at this address.</p>',
  );
  expect(one?.text).toContain(`<a href="${store.origin}/">`);
  expect(other?.text).toBe(one?.text);
});

test('without a key a browser cannot tell known addresses from unknown ones, however they are written', async () => {
  for (const [known, unknown] of [
    ['/v1/pets', '/v1/none'],
    ['/%761/pets', '/%761/none'],
    ['http://store/v1/pets', 'http://store/v1/none'],
    ['http://store/%761/pets', 'http://store/%761/none'],
  ] as const) {
    expect([known, ...(await typeOf(known))]).toEqual([
      known,
      ...(await typeOf(unknown)),
    ]);
  }
});

test('with a key an unknown address is 404, with the message of the Error body', async () => {
  const { status, text } = await send(store.origin, {
    path: '/none',
    headers: { accept: chromium, authorization: `Bearer ${store.key}` },
  });
  expect(status).toBe(404);
  expect(text).toContain('<p>There is nothing at this address.</p>');
});

test('a client that does not prefer HTML gets the Error body, which varies by Accept, too', async () => {
  for (const accept of [
    '*/*',
    'application/json',
    'application/json, text/html;q=0.9',
    'image/png',
  ]) {
    expect([accept, ...(await typeOf('/none', { accept }))]).toEqual([
      accept,
      401,
      json,
    ]);
  }
  const { headers, text } = await send(store.origin, { path: '/none' });
  expect(headers).toMatchObject({ 'content-type': json, vary: 'Accept' });
  expect(JSON.parse(text)).toMatchObject({
    code: 'UNAUTHENTICATED',
    status: 401,
  });
});

test('the APIs send Error bodies also to a browser, and so does a POST to any address', async () => {
  const { key } = store;
  for (const path of [
    '/v1',
    '/v1/',
    '/v1/none',
    '/v1/pets',
    '/graphql/none',
    '/v1/pets/%ud800',
    '/graphql/%',
  ]) {
    expect([path, ...(await typeOf(path))]).toEqual([path, 401, json]);
  }
  for (const path of [
    '/v1/none',
    '/v1/pets/4711',
    '/graphql/none',
    '/v1/pets/%ud800',
    '/graphql/%',
  ]) {
    expect([path, ...(await typeOf(path, { key }))]).toEqual([path, 404, json]);
  }
  for (const path of [
    '/v%31/pets/%3Cb%3E',
    '/%76%31/none',
    '/%67raphql/none',
    '/v%31/pets/%ud800',
    '/%56%31',
  ]) {
    expect([path, ...(await typeOf(path))]).toEqual([path, 401, json]);
    expect([path, ...(await typeOf(path, { key }))]).toEqual([path, 404, json]);
  }
  expect(await typeOf('/none', { method: 'POST' })).toEqual([401, json]);
  expect(await typeOf('/docs', { key, method: 'POST' })).toEqual([405, json]);
  expect(await typeOf('/v1x', { key })).toEqual([404, html]);
});
