import { createSecret } from '#engine/access/keys/secret.js';
import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/**
 * The edge table of headers: keys, request ids, Accept, and the size of all
 * headers.
 */

let valid: string;
const store = storeForAll({}, async () => {
  valid = `Authorization: Bearer ${store.key}\r\n`;
});

async function get(headers: string, path = '/v1/pets') {
  const [response] = await exchange(store, requestText(`GET ${path}`, headers));
  return {
    status: response?.status,
    headers: response?.headers,
    body: JSON.parse(response?.text || 'null'),
  };
}

const refused = (message: string, challenge: string) => ({
  status: 401,
  headers: { 'www-authenticate': challenge },
  body: { code: 'UNAUTHENTICATED', message, status: 401 },
});
const keyMissing = refused(
  'An API key is required: Authorization: Bearer <API_KEY>.',
  'Bearer',
);
const keyInvalid = refused(
  'The API key is not valid.',
  'Bearer error="invalid_token"',
);
const tooLarge = {
  code: 'REQUEST_HEADER_FIELDS_TOO_LARGE',
  message: 'The headers have more than 16384 bytes.',
  status: 431,
};

describe('a key', () => {
  test.each([
    ['in the usual way', (key: string) => `Authorization: Bearer ${key}`],
    [
      'with a lower-case scheme',
      (key: string) => `authorization: bearer ${key}`,
    ],
    [
      'with extra spaces',
      (key: string) => `Authorization:   Bearer   ${key}   `,
    ],
  ])('%s is accepted', async (_how, header) => {
    expect(await get(`${header(store.key)}\r\n`)).toMatchObject({
      status: 200,
      body: [],
    });
  });

  test.each([
    ['no header', () => 'X-Api-Key: x'],
    [
      'in the query',
      () => '',
      (key: string) => `?api_key=${key}&access_token=${key}&key=${key}`,
    ],
    ['an empty header', () => 'Authorization:'],
    ['another scheme', () => 'Authorization: Basic dXNlcjpwYXNz'],
    ['the scheme alone', () => 'Authorization: Bearer'],
    ['the key alone', (key: string) => `Authorization: ${key}`],
    ['a tab between', (key: string) => `Authorization: Bearer\t${key}`],
    [
      'a header for proxies',
      (key: string) => `Proxy-Authorization: Bearer ${key}`,
    ],
    ['a cookie', (key: string) => `Cookie: Authorization=Bearer ${key}`],
    ['another header', (key: string) => `X-Api-Key: ${key}`],
    [
      'another scheme first',
      (key: string) =>
        `Authorization: Basic eDp5\r\nAuthorization: Bearer ${key}`,
    ],
  ])(
    'is missing: %s',
    async (_how, header, query: (key: string) => string = () => '') => {
      const line = header(store.key);
      expect(
        await get(line && `${line}\r\n`, `/v1/pets${query(store.key)}`),
      ).toMatchObject(keyMissing);
    },
  );

  const otherThan = (character = '') => (character === 'a' ? 'b' : 'a');
  test.each([
    [
      'that is unknown',
      () => 'Bearer ask_0000000000000000000000000000000000000000000000000',
    ],
    [
      'with its last character changed',
      (key: string) => `Bearer ${key.slice(0, -1)}${otherThan(key.at(-1))}`,
    ],
    ['cut', (key: string) => `Bearer ${key.slice(0, -1)}`],
    ['with a character after it', (key: string) => `Bearer ${key}x`],
    ['in quotes', (key: string) => `Bearer "${key}"`],
    ['twice in a header', (key: string) => `Bearer ${key}, Bearer ${key}`],
    [
      'in two headers, the wrong one first',
      (key: string) => `Bearer wrong\r\nAuthorization: Bearer ${key}`,
    ],
    [
      'in two headers, the right one first',
      (key: string) => `Bearer ${key}\r\nAuthorization: Bearer wrong`,
    ],
    [
      'beside another scheme',
      (key: string) => `Bearer ${key}\r\nAuthorization: Basic eDp5`,
    ],
    ['of 12 KiB', () => `Bearer ${'a'.repeat(12_288)}`],
    ['that is not ASCII', () => 'Bearer cl\xe9'],
  ])('%s is refused', async (_how, header) => {
    expect(await get(`Authorization: ${header(store.key)}\r\n`)).toMatchObject(
      keyInvalid,
    );
  });
});

test('a revoked or expired key gets byte for byte the response of an unknown one, on every path', async () => {
  const revoked = await store.keys.issue({ name: 'revoked' });
  await store.keys.revoke(revoked.id);
  const expired = await store.keys.issue({
    name: 'expired',
    expiresAt: new Date('2020-01-01'),
  });
  const responses: unknown[] = [];
  for (const key of ['x', createSecret(), revoked.key, expired.key]) {
    for (const line of [
      'GET /v1/pets',
      'DELETE /v1/pets',
      'GET /v1/nothing',
      'POST /v1/pets',
      'PUT /admin',
    ]) {
      const [response] = await exchange(
        store,
        requestText(line, `Authorization: Bearer ${key}\r\n`),
      );
      const { date, 'x-request-id': _id, ...headers } = response?.headers ?? {};
      responses.push({ ...response, headers });
    }
  }
  expect(responses).toEqual(responses.map(() => responses[0]));
});

describe('a request id', () => {
  test.each(['A.b_c:d-9', 'x'.repeat(64)])('%s is kept', async (id) => {
    for (const path of ['/v1/pets', '/v1/pets/%ff', '/livez', '/graphql']) {
      expect(
        (await get(`${valid}X-Request-Id: ${id}\r\n`, path)).headers,
      ).toHaveProperty('x-request-id', id);
      expect(
        (await get(`X-Request-Id: ${id}\r\n`, path)).headers,
      ).toHaveProperty('x-request-id', id);
    }
  });

  test.each([
    '',
    'X-Request-Id: a b\r\n',
    `X-Request-Id: ${'x'.repeat(65)}\r\n`,
    'X-Request-Id: "\r\n',
  ])('is generated when there is no valid one: %j', async (header) => {
    const uuid = expect.stringMatching(
      /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/,
    );
    expect((await get(valid + header)).headers).toHaveProperty(
      'x-request-id',
      uuid,
    );
  });
});

test.each(['text/html', 'application/json;q=0', 'nonsense'])(
  'a client that accepts %s gets JSON',
  async (accept) => {
    const json = { 'content-type': 'application/json; charset=utf-8' };
    expect(await get(`${valid}Accept: ${accept}\r\n`)).toMatchObject({
      status: 200,
      headers: json,
      body: [],
    });
  },
);

test.each([
  ['a key of 64 KiB', `Authorization: Bearer ${'a'.repeat(65_536)}\r\n`],
  ['many small ones', 'a: b\r\n'.repeat(4000)],
  ['a path', '', `/v1/pets?${'a'.repeat(20_000)}`],
])(
  'headers of more than 16 KiB are refused: %s',
  async (_what, headers, path?: string) => {
    expect(await get(headers, path)).toMatchObject({
      status: 431,
      body: tooLarge,
    });
  },
);
