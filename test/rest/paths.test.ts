import { METHODS } from 'node:http';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of paths and methods. */

let rex: { id: number };
const store = storeForAll({}, async () => {
  rex = (
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name: 'Rex', categoryId: 1 },
    })
  ).json;
});

const nothing = {
  code: 'NOT_FOUND',
  message: 'There is nothing at this address.',
  status: 404,
};
const noAnimal = (id: string) => ({
  code: 'NOT_FOUND',
  message: `There is no animal with the id ${id}.`,
  status: 404,
});

test('an animal is found by its id, also encoded, before a query and in an absolute URI', async () => {
  for (const id of [
    `${rex.id}?`,
    `${rex.id}?limit=x`,
    `${rex.id}#x`,
    `%3${rex.id}`,
  ]) {
    expect((await rest(store, `/v1/pets/${id}`)).json).toEqual(rex);
  }
  const [response] = await fetchBoth(`http://store.example/v1/pets/${rex.id}`);
  expect(JSON.parse(response?.text ?? '')).toEqual(rex);
});

describe('there is no animal', () => {
  const beyond = [
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775809',
    '9'.repeat(15_000),
  ];
  test.each([
    '0',
    '-0',
    '-1',
    '01',
    '+1',
    '1.0',
    '1e0',
    '0x1',
    'NaN',
    '__proto__',
    ':petId',
    ...beyond,
    '<b>1',
  ])('with the id %j', async (id) =>
    expect((await rest(store, `/v1/pets/${id}`)).json).toEqual(noAnimal(id)),
  );

  test.each([
    '\u0000',
    '1\u0000',
    ' 1',
    '1/2',
    '../../livez',
    '١',
    '1\r\nX-Injected: 1',
  ])('with the encoded id %j', async (id) => {
    const { json, headers } = await rest(
      store,
      `/v1/pets/${encodeURIComponent(id)}`,
    );
    expect(json).toEqual(noAnimal(id));
    expect(headers).not.toHaveProperty('x-injected');
  });
});

/** @returns the responses to a request with the key and without */
async function fetchBoth(path: string) {
  const line = `GET ${path}`;
  const [withKey] = await exchange(
    store,
    requestText(line, `Authorization: Bearer ${store.key}\r\n`),
  );
  const [without] = await exchange(store, requestText(line));
  return [withKey, without].map((one) => ({
    status: one?.status,
    headers: one?.headers,
    text: one?.text ?? '',
  }));
}

describe('there is nothing', () => {
  test.each([
    ...[
      '//',
      '/index.html',
      '/v1',
      '/v2/pets',
      '/pets',
      '/V1/pets',
      '/v1/PETS',
      '/v1/pets.json',
      '/v1//pets',
    ],
    ...[
      '//v1/pets',
      '/v1/pets/',
      '/v1/pets/1/',
      '/v1/pets/1/2',
      '/./v1/pets',
      '/v1/x/../pets',
      '/livez/..;/v1/pets',
    ],
    ...[
      '/v1/pets;a=b',
      '/v1/pets%20',
      '/v1/pets%2F1',
      '/v1/pets%00',
      '/v1/pets%0d%0aX-Injected:1',
      '/v1%5cpets',
    ],
    ...[
      '/v1/pets%3flimit=1',
      '/v1/%c0%af',
      '/%u002e%u002e/',
      '/v1/pets/%',
      '/v1/pets/%zz',
      '/v1/pets/%ff',
    ],
    ...[
      '/v1/store',
      '/v1/store/orders/',
      '/livez/',
      '*',
      '*?',
      'http://x:y/v1/pets',
    ],
    // Paths that scanners try.
    ...[
      '/playground',
      '/v1/graphql',
      '/.env',
      '/.git/config',
      '/metrics',
      '/debug',
      '/admin',
    ],
  ])('at %s with a key, and 401 without one', async (path) => {
    const [withKey, without] = await fetchBoth(path);
    expect([withKey?.status, JSON.parse(withKey?.text ?? '')]).toEqual([
      404,
      nothing,
    ]);
    expect(withKey?.headers).not.toHaveProperty('x-injected');
    expect([without?.status, JSON.parse(without?.text ?? '').code]).toEqual([
      401,
      'UNAUTHENTICATED',
    ]);
  });

  test.each(['/graphql/', '/graphql%2f', '/GraphQL', '/graphql/console'])(
    'at %s, with an error of REST or of GraphQL',
    async (path) => {
      for (const [at, { status, text }] of (await fetchBoth(path)).entries()) {
        const { errors: [error] = [], ...body } = JSON.parse(text);
        expect([status, (error?.extensions ?? body).status]).toEqual(
          at === 0 ? [404, 404] : [401, 401],
        );
      }
    },
  );

  test('at a path with backslashes, which is no HTTP', async () => {
    expect((await fetchBoth('\\v1\\pets')).map(({ status }) => status)).toEqual(
      [400, 400],
    );
  });

  test('for any method and any body', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']) {
      const body = method === 'TRACE' ? undefined : '{"truncated';
      expect((await rest(store, '/v1/nothing', { method, body })).json).toEqual(
        nothing,
      );
    }
  });
});

describe.each([
  ['/v1/pets', 'GET, HEAD, OPTIONS, POST'],
  ['/v1/pets/rex', 'GET, HEAD, OPTIONS'],
  ['/v1/store/orders', 'GET, HEAD, OPTIONS'],
  ['/v1/openapi.json', 'GET, HEAD, OPTIONS'],
  ['/livez', 'GET, HEAD, OPTIONS'],
  ['/schema.graphql', 'GET, HEAD, OPTIONS'],
])('at %s', (path, allow) => {
  test(`OPTIONS names ${allow}`, async () => {
    for (const body of [undefined, '{"truncated']) {
      const { status, headers } = await rest(store, path, {
        method: 'OPTIONS',
        body,
      });
      expect([status, headers.allow]).toEqual([204, allow]);
    }
  });

  // CONNECT has no path.
  const others = METHODS.filter(
    (method) => !allow.split(', ').includes(method) && method !== 'CONNECT',
  );
  test.each(others)('%s is not allowed', async (method) => {
    const { json, headers } = await rest(store, path, { method });
    const message = `${method} is not possible here. Allowed: ${allow}.`;
    expect(json).toEqual({ code: 'METHOD_NOT_ALLOWED', message, status: 405 });
    expect(headers.allow).toBe(allow);
  });
});

test.each(['/v1/pets', '/v1/pets/0', '/v1/nothing', '/livez'])(
  'HEAD %s is GET without a body',
  async (path) => {
    const headers = {
      authorization: `Bearer ${store.key}`,
      'x-request-id': 'same',
    };
    const head = await send(store.origin, { method: 'HEAD', path, headers });
    const get = await send(store.origin, { path, headers });
    expect(head).toEqual({
      ...get,
      headers: { ...get.headers, date: head.headers.date },
      text: '',
    });
  },
);
