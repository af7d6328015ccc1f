import { stock } from '../support/database-access.ts';
import { features } from '../support/features.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type RestRequest, rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * A client that has the current response gets 304: ETag and If-None-Match (RFC
 * 9110).
 */

const store = storeForAll();
let tag: string;

beforeEach(async () => {
  await store.empty();
  await stock(store.database, 5);
  tag = `${(await rest(store, '/v1/pets')).headers.etag}`;
});

const withTag = (
  header: string,
  path = '/v1/pets',
  request: RestRequest = {},
) => rest(store, path, { ...request, headers: { 'if-none-match': header } });

describe('a client that has the list gets 304', () => {
  test.each<[string, (tag: string) => string]>([
    ['its tag', (own) => own],
    ['its tag, as a strong one', (own) => own.slice(2)],
    ['its tag among others', (own) => `"x", W/"y,z",${own} , "a b"`],
    ['anything', () => '*'],
  ])('%s', async (_what, header) => {
    expect((await withTag(header(tag))).status).toBe(304);
  });

  test('without a body and the headers of its type and length, with all other headers of the 200', async () => {
    const full = await rest(store, '/v1/pets?limit=2');
    const { status, text, headers } = await withTag(
      `${full.headers.etag}`,
      '/v1/pets?limit=2',
    );
    expect([status, text]).toEqual([304, '']);
    const {
      'content-type': _type,
      'content-length': _length,
      date,
      'x-request-id': _id,
      ...kept
    } = full.headers;
    const { date: _now, 'x-request-id': _own, ...sent } = headers;
    expect(sent).toEqual(kept);
    expect(sent).toMatchObject({
      etag: expect.stringMatching(/^W\/"[\w+-]+"$/),
      // Only the client may store it, and it must revalidate each time.
      'cache-control': 'private, no-cache',
      vary: 'accept-encoding',
      link: expect.stringMatching(/after=\d+>; rel="next"/),
    });
  });

  test('for HEAD, too', async () => {
    const headers = `Authorization: Bearer ${store.key}\r\nIf-None-Match: ${tag}\r\n`;
    const [head] = await exchange(
      store,
      requestText('HEAD /v1/pets', headers),
      'HEAD',
    );
    expect(head).toMatchObject({
      status: 304,
      text: '',
      headers: { etag: tag },
    });
    expect(head?.headers).not.toHaveProperty('content-length');
    expect(head?.headers).not.toHaveProperty('content-type');
  });

  const hasPages = features.some(({ name }) => name === 'pages');
  const paths = ['/v1/pets', '/v1/openapi.json', ...(hasPages ? ['/'] : [])];
  test.each(['gzip', 'br', 'zstd', '*', 'deflate, gzip;q=0.5'])(
    'a HEAD with `Accept-Encoding: %s` has the headers of the GET',
    async (codings) => {
      const headers = {
        authorization: `Bearer ${store.key}`,
        'if-none-match': '*',
        'accept-encoding': codings,
      };
      for (const path of paths) {
        const all = [];
        for (const method of ['GET', 'HEAD']) {
          const request = { method, path, headers };
          const { status, headers: found } = await send(store.origin, request);
          const { date: _now, 'x-request-id': _id, ...kept } = found;
          expect(kept).not.toHaveProperty('content-encoding');
          all.push({ status, kept });
        }
        expect(all[1]).toEqual(all[0]);
        expect(all[0]?.status).toBe(304);
      }
    },
  );
});

test.each(['"x"', 'x', '', `"${'x'.repeat(12_000)}"`, '"a" '.repeat(3000)])(
  'a client with another tag gets the list: %.20j',
  async (header) => {
    const { status, json } = await withTag(header);
    expect([status, json.length]).toEqual([200, 5]);
  },
);

test('the tag changes with the animals, with the page, and when a next page appears', async () => {
  const tagOf = async (query: string) =>
    `${(await rest(store, `/v1/pets${query}`)).headers.etag}`;
  const [last, other] = [
    await tagOf('?limit=5&status=available'),
    await tagOf('?limit=4'),
  ];
  // The same animals.
  expect(last).toBe(tag);
  await stock(store.database, 1);
  const [followed, all] = [
    await tagOf('?limit=5&status=available'),
    await tagOf(''),
  ];
  expect(new Set([last, other, followed, all]).size).toBe(4);
  expect((await withTag(tag)).status).toBe(200);
});

test('an animal and the OpenAPI documents have tags, too', async () => {
  const [first] = (await rest(store, '/v1/pets?limit=1')).json;
  for (const path of [
    `/v1/pets/${first.id}`,
    '/v1/openapi.json',
    '/v1/openapi-3.0.json',
  ]) {
    const headers = { authorization: `Bearer ${store.key}` };
    const { etag = '' } = (await send(store.origin, { path, headers })).headers;
    const again = await send(store.origin, {
      path,
      headers: { ...headers, 'if-none-match': etag },
    });
    expect([again.status, again.text, again.headers.etag]).toEqual([
      304,
      '',
      etag,
    ]);
  }
});

test('a GraphQL query by GET has a tag for each media type; a response with errors has none', async () => {
  const get = (query: string, headers: Record<string, string>) =>
    send(store.origin, {
      path: `/graphql?query=${encodeURIComponent(query)}`,
      headers: { authorization: `Bearer ${store.key}`, ...headers },
    });
  const plain = await get('{ pets { id } }', { accept: 'application/json' });
  const typed = await get('{ pets { id } }', {
    accept: 'application/graphql-response+json',
  });
  expect(plain.headers).toMatchObject({
    'cache-control': 'private, no-cache',
    vary: 'Accept, accept-encoding',
  });
  expect(plain.headers.etag).not.toBe(typed.headers.etag);
  const again = await get('{ pets { id } }', {
    accept: 'application/json',
    'if-none-match': `${plain.headers.etag}`,
  });
  expect([again.status, again.text]).toEqual([304, '']);
  const failed = await get('{ pets(limit: 0) { id } }', {
    'if-none-match': '*',
  });
  expect([
    failed.status,
    failed.headers.etag,
    failed.headers['cache-control'],
  ]).toEqual([200, undefined, 'no-store']);
});

test('creations, errors, readiness and GraphQL by POST have no tag and must not be stored', async () => {
  const uncached = [
    await withTag('*', '/v1/pets', {
      method: 'POST',
      json: { name: 'Rex', categoryId: 1 },
    }),
    await withTag('*', '/v1/pets?limit=0'),
    await withTag('*', '/v1/pets', { key: null }),
    await withTag('*', '/v1/nothing'),
    await withTag('*', '/v1/store/orders'),
    await send(store.origin, {
      path: '/readyz',
      headers: { 'if-none-match': '*' },
    }),
    await graphqlText(store, { query: '{ pets { id } }' }),
  ];
  expect(uncached.map(({ status }) => status)).toEqual([
    201, 400, 401, 404, 501, 200, 200,
  ]);
  for (const { headers } of uncached)
    expect([headers.etag, headers['cache-control']]).toEqual([
      undefined,
      'no-store',
    ]);
});
