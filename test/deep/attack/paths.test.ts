import { stock } from '../../support/database-access.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { exchange } from '../../support/raw.ts';
import { storeForAll } from '../../support/store.ts';

/** Tricks with paths: none goes around the guard, none leaves the documents' folder, none becomes another path. */
const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

async function get(path: string, headers = '') {
  const bytes = Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n${headers}\r\n`,
    'latin1',
  );
  const [response] = await exchange(store, bytes);
  return response ?? { status: 0, headers: {} as Record<string, string>, text: '' };
}

const guarded: Array<[string, number]> = [
  ['/v1/pets/..;/', 404],
  ['/livez/..;/v1/pets', 404],
  ['/livez/../v1/pets', 404],
  ['/docs/../v1/pets', 404],
  ['/docs/..%2fv1/pets', 404],
  ['/docs/%2e%2e/v1/pets', 404],
  ['/docs/%252e%252e/v1/pets', 404],
  ['/%2e%2e/v1/pets', 404],
  ['/./v1/pets', 404],
  ['//v1/pets', 404],
  ['/v1//pets', 404],
  ['/v1/pets//', 404],
  ['/v1/pets/', 404],
  ['/v1/pets;a=b', 404],
  ['/v1/pets%20', 404],
  ['/v1/pets%00', 404],
  ['/v1/pets%00.json', 404],
  ['/v1/pets%0d%0aX-Injected:1', 404],
  ['/v1/pets%3flimit=1', 404],
  ['/v1/pets%23', 404],
  ['/v1%2fpets', 404],
  ['/v1%5cpets', 404],
  ['\\v1\\pets', 400],
  ['/v1/pets.json', 404],
  ['/V1/pets', 404],
  ['/v1/PETS', 404],
  ['/v1/%c0%af', 404],
  ['/v1/pets/%ff', 404],
  ['/v1/pets/%', 404],
  ['/v1/pets/%zz', 404],
  ['/%u002e%u002e/', 404],
  ['/v1/pets/1/../2', 404],
  ['/v1/pets/1%2f2', 404],
  ['/v1/pets/__proto__', 404],
  ['/v1/pets/constructor', 404],
  ['/graphql/', 404],
  ['/graphql%2f', 404],
  ['/GraphQL', 404],
  ['*', 404],
  ['*?', 404],
];

const responseOf = async (path: string) => {
  const withKey = await get(path, `Authorization: Bearer ${store.key}\r\n`);
  const without = await get(path);
  return { withKey, without };
};

test.each(guarded)('%s is %i with a key and not served without one', async (path, status) => {
  const { withKey, without } = await responseOf(path);
  expect(withKey.status).toBe(status);
  expect(withKey.text).not.toContain('pet 1');
  expect(without.status).toBe(status === 400 ? 400 : 401);
  expect(withKey.headers).not.toHaveProperty('x-injected');
  for (const { text, status: told } of [withKey, without]) {
    const { errors: [error] = [], ...body } = JSON.parse(text);
    expect(error?.extensions ?? body).toMatchObject({ status: told });
  }
});

test.each([
  '/docs/../package.json',
  '/docs/static/../../package.json',
  '/docs/static/..%2f..%2fpackage.json',
  '/docs/static/%2e%2e/%2e%2e/package.json',
  '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json',
  '/docs/static/..%5c..%5cpackage.json',
  '/docs/static//etc/passwd',
  '/docs/static/%2fetc%2fpasswd',
  '/docs/static/....//....//package.json',
  '/docs/static/.%00./package.json',
  '/docs/static/index.html%00.js',
  '/docs/.env',
  '/docs/static/.git/config',
  '/docs/static/../../../../../../../../etc/passwd',
])('%s leaves the folder of the documents nowhere', async (path) => {
  const { withKey, without } = await responseOf(path);
  for (const { status, text } of [withKey, without]) {
    expect([400, 401, 404]).toContain(status);
    expect(text).not.toMatch(/"dependencies"|root:/);
    expect(JSON.parse(text)).toMatchObject({ status });
  }
});

describe('an address in absolute form', () => {
  test.each([
    'http://evil.example/v1/pets?limit=1',
    'HTTP://EVIL.example/v1/pets?limit=1',
    'https://evil.example:1/v1/pets?limit=1',
  ])('%s is guarded, and leads nowhere else', async (address) => {
    const { withKey, without } = await responseOf(address);
    expect(without.status).toBe(401);
    expect(withKey.status).toBe(200);
    expect(withKey.headers.link).toBe('<http://store.example/v1/pets?limit=1&after=1>; rel="next"');
    expect(JSON.stringify(withKey.headers)).not.toMatch(/evil/i);
  });
});

describe('what a client writes into an address cannot leave its place in the Link of the next page', () => {
  const ask = (path: string) => get(path, `Authorization: Bearer ${store.key}\r\n`);
  test.each([
    ['/v1/pets?limit=1&x=>;rel="next",<http://evil.example>', '%3E;rel=%22next%22,%3Chttp://evil.example%3E'],
    ['/v1/pets?limit=1&x=%0d%0aX-Injected:1', '%0d%0aX-Injected:1'],
    ['/v1/pets?limit=1&x=a?b', 'a?b'],
  ])('%s', async (path, kept) => {
    const { status, headers } = await ask(path);
    expect(status).toBe(200);
    expect(headers.link).toBe(`<http://store.example/v1/pets?limit=1&x=${kept}&after=1>; rel="next"`);
    expect(headers).not.toHaveProperty('x-injected');
  });

  test('a question mark in a parameter takes no filter away from the next page', async () => {
    const { headers } = await ask('/v1/pets?x=?&status=available&limit=1');
    expect(headers.link).toBe('<http://store.example/v1/pets?x=?&status=available&limit=1&after=1>; rel="next"');
  });
});
