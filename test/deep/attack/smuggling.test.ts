import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { exchange } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** Requests that two servers in a row could read differently: all are refused, the connection is closed, nothing runs. */
const store = storeForAll({}, async () => {});
afterEach(async () => {
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});

const hidden = '{"name":"smuggled","categoryId":1}';
/** A creation that would be run if what stands before it ended earlier than the server thinks. */
const second = () =>
  `POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${store.key}\r\nContent-Type: application/json\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`;
const head = (method = 'POST') => `${method} /v1/pets HTTP/1.1\r\nHost: a\r\n`;

const unknownMethod = 'a method nobody knows';
const malformed: Array<[string, () => string]> = [
  [
    'Content-Length and Transfer-Encoding',
    () => `${head()}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${second()}`,
  ],
  [
    'Transfer-Encoding and Content-Length',
    () => `${head()}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${second()}`,
  ],
  ['two Content-Lengths that differ', () => `${head()}Content-Length: 0\r\nContent-Length: 5\r\n\r\n${second()}`],
  ['two Content-Lengths that agree', () => `${head()}Content-Length: 0\r\nContent-Length: 0\r\n\r\n${second()}`],
  ['a list in Content-Length', () => `${head()}Content-Length: 0, 5\r\n\r\n${second()}`],
  ['a sign in Content-Length', () => `${head()}Content-Length: +0\r\n\r\n${second()}`],
  ['a negative Content-Length', () => `${head()}Content-Length: -1\r\n\r\n${second()}`],
  ['a hexadecimal Content-Length', () => `${head()}Content-Length: 0x0\r\n\r\n${second()}`],
  ['a Content-Length that is too large', () => `${head()}Content-Length: 99999999999999999999999\r\n\r\n${second()}`],
  ['an empty Content-Length', () => `${head()}Content-Length: \r\n\r\n${second()}`],
  [
    'Transfer-Encoding that does not end in chunked',
    () => `${head()}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${second()}`,
  ],
  [
    'two Transfer-Encodings',
    () => `${head()}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${second()}`,
  ],
  ['a Transfer-Encoding nobody knows', () => `${head()}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${second()}`],
  ['a space before the colon', () => `${head()}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${second()}`],
  ['a tab before the colon', () => `${head()}Content-Length\t: 0\r\n\r\n${second()}`],
  ['a folded header', () => `${head()}X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n${second()}`],
  ['a first header that is folded', () => `POST /v1/pets HTTP/1.1\r\n Host: a\r\n\r\n${second()}`],
  ['a bare line feed between headers', () => `${head()}X-A: b\nContent-Length: 0\r\n\r\n${second()}`],
  ['a bare carriage return in a header', () => `${head()}X-A: b\rContent-Length: 0\r\n\r\n${second()}`],
  ['line feeds alone', () => `POST /v1/pets HTTP/1.1\nHost: a\nContent-Length: 0\n\n${second()}`],
  ['a null byte in a header', () => `${head()}X-A: b\0c\r\n\r\n${second()}`],
  ['a null byte in a header name', () => `${head()}X-\0A: b\r\n\r\n${second()}`],
  ['a header without a colon', () => `${head()}X-A\r\n\r\n${second()}`],
  ['a header without a name', () => `${head()}: b\r\n\r\n${second()}`],
  ['a chunk size that is none', () => `${head()}Transfer-Encoding: chunked\r\n\r\nz\r\n\r\n${second()}`],
  ['a negative chunk size', () => `${head()}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${second()}`],
  [
    'a chunk size that overflows',
    () => `${head()}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n${second()}`,
  ],
  ['a bare line feed after a chunk size', () => `${head()}Transfer-Encoding: chunked\r\n\r\n0\n\n${second()}`],
  [unknownMethod, () => `BREW /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n${second()}`],
  ['a version nobody knows', () => `GET /v1/pets HTTP/9.9\r\nHost: a\r\n\r\n${second()}`],
  ['a space in the path', () => `GET /v1/ pets HTTP/1.1\r\nHost: a\r\n\r\n${second()}`],
  ['a control character in the path', () => `GET /v1/\x01pets HTTP/1.1\r\nHost: a\r\n\r\n${second()}`],
  ['no path', () => `GET  HTTP/1.1\r\nHost: a\r\n\r\n${second()}`],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a greeting of TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['no HTTP at all', () => 'hello\r\n\r\n'],
];

describe.each([
  ['without a key', () => ''],
  ['with a key', () => `Authorization: Bearer ${store.key}\r\n`],
])('%s', (_who, authorization) => {
  test.each(malformed)('%s is refused, and what stands behind it is not run', async (what, bytes) => {
    const text = bytes().replace('Host: a\r\n', `Host: a\r\n${authorization()}`);
    const responses = await exchange(store, Buffer.from(text, 'latin1'));
    expect(responses).toHaveLength(1);
    const [{ status, headers, text: body } = { status: 0, headers: {}, text: '{}' }] = responses;
    // With a key its headers are judged before the rest of it arrives: it names no media type.
    expect(what === unknownMethod ? [501] : [400, 401, 415]).toContain(status);
    expect(JSON.parse(body)).toMatchObject({ status });
    expect(headers.connection).toBe('close');
  });

  test('a body with GET is a body, not a request', async () => {
    const inner = second();
    const outer = `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization()}Connection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`;
    expect(await exchange(store, outer)).toHaveLength(1);
  });

  test('an upgrade is not made', async () => {
    const upgrade = `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization()}Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n`;
    const responses = await exchange(store, upgrade);
    expect(responses.map(({ status }) => status)).toEqual([authorization() ? 200 : 401]);
  });
});

describe('two keys', () => {
  test.each([
    ['in two headers', () => `Authorization: Bearer wrong\r\nAuthorization: Bearer ${store.key}\r\n`],
    [
      'in two headers, the right one first',
      () => `Authorization: Bearer ${store.key}\r\nAuthorization: Bearer wrong\r\n`,
    ],
    ['in one header', () => `Authorization: Bearer wrong, Bearer ${store.key}\r\n`],
    ['one of them hidden by a prefix', () => `X-Authorization: Bearer ${store.key}\r\n`],
    ['in a header with underscores', () => `HTTP_AUTHORIZATION: Bearer ${store.key}\r\n`],
    ['in a proxy header', () => `Proxy-Authorization: Bearer ${store.key}\r\n`],
    ['in a cookie', () => `Cookie: Authorization=Bearer ${store.key}\r\n`],
  ])('%s let nobody in', async (_how, headers) => {
    const [response] = await exchange(
      store,
      `GET /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers()}\r\n`,
    );
    expect(response?.status).toBe(401);
  });
});
