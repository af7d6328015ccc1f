import { expect, test } from '../support/jest.ts';
import { exchange } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/** Requests that are refused before their body has come: what is left of it must be neither waited for nor answered. */

let reader: string;
// Whoever keeps such a connection open answers a second time when this has passed.
const store = storeForAll({ REQUEST_TIMEOUT_MS: '5000' }, async () => {
  ({ key: reader } = await store.keys.issue({ name: 'reader', scope: 'read' }));
});

const bearer = (key: string) => `Authorization: Bearer ${key}\r\n`;

const post = (path = '/v1/pets', key?: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${key === undefined ? '' : bearer(key)}`;
const refusals: Array<[status: number, what: string, head: () => string]> = [
  [401, 'no key', () => post()],
  [401, 'a wrong key', () => post('/v1/pets', 'wrong')],
  [401, 'no key, for GraphQL', () => post('/graphql')],
  [401, 'no key, with a path that cannot be read', () => post('/v1/pets/%ff')],
  [403, 'a key that may only read', () => post('/v1/pets', reader)],
  [404, 'an address where nothing is', () => post('/v1/nothing', store.key)],
  [404, 'a path that cannot be read', () => post('/v1/pets/%ff', store.key)],
  [405, 'a method that is not allowed', () => post('/v1/pets', store.key).replace('POST', 'PUT')],
  [413, 'a body that is too large', () => post('/v1/pets', store.key)],
  [415, 'a body that is no JSON', () => post('/v1/pets', store.key)],
];

test.each(refusals)('%i for %s is the only answer, and closes the connection', async (status, _what, head) => {
  const type = `Content-Type: ${status === 415 ? 'text/plain' : 'application/json'}\r\n`;
  const size = status === 413 ? 9_999_999 : 1000;
  const bodies = [`Content-Length: ${size}\r\n\r\n{`];
  // How large a body in chunks is, is not known before.
  if (status !== 413) bodies.push('Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n');
  for (const body of bodies) {
    const responses = await exchange(store, head() + type + body);
    expect(responses).toEqual([
      { status, headers: expect.objectContaining({ connection: 'close' }), text: expect.stringContaining(`${status}`) },
    ]);
  }
});

test('a refusal that leaves nothing unread keeps the connection', async () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n`;
  const last = `${get('/v1/nothing')}Connection: close\r\n\r\n`;
  const responses = await exchange(store, `${get('/v1/pets')}\r\n${get('/v1/pets/%ff')}\r\n${last}`);
  expect(responses.map(({ status }) => status)).toEqual([401, 401, 401]);
});

test.each([
  ['GET', '/v1/pets'],
  ['OPTIONS', '/v1/pets'],
  ['GET', '/graphql?query={__typename}'],
])('%s %s that succeeds without its body is answered once, too', async (method, path) => {
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\n${bearer(store.key)}Content-Type: application/json\r\n`;
  const responses = await exchange(store, `${head}Content-Length: 1000\r\n\r\n{`, method);
  expect(responses).toMatchObject([{ status: method === 'OPTIONS' ? 204 : 200, headers: { connection: 'close' } }]);
});

/** What breaks in the middle of a request, or after one: the parser notices when the request is under way already. */
const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;
const broken: Array<[what: string, bytes: () => string, answers: number[]]> = [
  ['an encoding that says nothing', () => get('/livez', 'Transfer-Encoding: identity\r\n'), [400]],
  [
    'an encoding that says nothing, of what is refused at once',
    () => `GET /v1/pets HTTP/1.1\r\nHost: a b\r\n${bearer(store.key)}Transfer-Encoding: identity\r\n\r\n`,
    [400],
  ],
  ['a chunk that is none, without a key', () => `${get('/v1/pets', 'Transfer-Encoding: chunked\r\n')}z\r\n`, [401]],
  ['what follows a creation', () => `${creation(store.key)}\0\r\n\r\n`, [201, 400]],
  ['what follows two creations', () => `${creation(store.key)}${creation(store.key)}\0\r\n\r\n`, [201, 201, 400]],
];

function creation(key: string): string {
  const body = '{"name":"Rex","categoryId":1}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: a\r\n${bearer(key)}Content-Type: application/json\r\n`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

test.each(broken)('%s is answered once, and whatever came before it first', async (_what, bytes, answers) => {
  // The key is known from here on: what needs no database is refused at once.
  await exchange(store, get('/v1/pets', `${bearer(store.key)}Connection: close\r\n`));
  const responses = await exchange(store, bytes());
  expect(responses.map(({ status }) => status)).toEqual(answers);
});
