import { withClock } from '../support/guesses.ts';
import { describe, expect, test } from '../support/jest.ts';
import { closing, exchange, requestText } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Bytes that are no HTTP request, or two that want to be taken for one. There is no key to ask for yet. */

let key: string;
const store = storeForAll({}, async () => {
  key = `Authorization: Bearer ${store.key}\r\n`;
});

const refusal = { code: 'BAD_USER_INPUT', message: 'This is not a well-formed HTTP/1.1 request.', status: 400 };
const rex = '{"name":"Rex","categoryId":1}';

const head = 'POST /v1/pets HTTP/1.1\r\nHost: a\r\n';
const length = (...values: string[]) => `${head}${values.map((value) => `Content-Length: ${value}\r\n`).join('')}\r\n`;
const coded = (value: string) => `${head}Transfer-Encoding: ${value}\r\n\r\n`;
const chunked = (body: string) => coded('chunked') + body;

describe.each([
  ['without a key', () => ''],
  ['with a key', () => key],
])('%s', (_who, authorization) => {
  test.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/1.2', 'GET /v1/pets HTTP/1.2\r\nHost: a\r\n\r\n'],
    ['bare line feeds', 'GET /v1/pets HTTP/1.1\nHost: a\n\n'],
    ['a space in the path', 'GET /v1/pets /1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['U+0000 in the path', 'GET /v1/pets\0 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['raw UTF-8 in the path', 'GET /v1/pets/\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a space before a colon', `${head}Transfer-Encoding : chunked\r\n\r\n`],
    ['a folded header', `${head}A: b\r\n Transfer-Encoding: chunked\r\n\r\n`],
    ['a bare line feed between headers', `${head}A: b\nContent-Length: 0\r\n\r\n`],
    ['a bare carriage return in a header', `${head}A: b\rContent-Length: 0\r\n\r\n`],
    ['U+0000 in a header', `${head}A: b\0c\r\n\r\n`],
    ['a header without a colon', `${head}A\r\n\r\n`],
    ['two lengths', length('0', '5')],
    ['the same length twice', length('0', '0')],
    ['a list of lengths', length('0, 5')],
    ['a negative length', length('-1')],
    ['a length that is none', length('five')],
    ['a length beyond 2^64', length('99999999999999999999999')],
    ['chunks beside a length', `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`],
    ['chunks not last', `${coded('chunked, gzip')}0\r\n\r\n`],
    // Where only the body is broken, the headers are judged before it: the key first, then the media type.
    ['an unknown transfer', `${coded('xchunked')}0\r\n\r\n`],
    ['a chunk size that is none', chunked('z\r\n\r\n')],
    ['a chunk size that overflows', chunked('10000000000000000\r\n\r\n')],
    ['a bare line feed after a chunk size', chunked('0\n\n')],
  ])('%s is answered once, and what stands behind it is not run', async (what, bytes) => {
    const hidden = `${head}${key}Content-Type: application/json\r\nContent-Length: ${rex.length}\r\n\r\n${rex}`;
    const first = bytes.replace('Host: a\r\n', `Host: a\r\n${authorization()}`);
    const [response, ...others] = await withClock(async () => {
      // The parser would be first while a key is looked up.
      await rest(store, '/v1/pets');
      return exchange(store, Buffer.from(first + hidden, 'latin1'));
    });
    const body = JSON.parse(response?.text ?? '');
    expect(others).toEqual([]);
    const isBody = /unknown transfer|chunk size/.test(what);
    expect(body).toEqual(isBody ? expect.objectContaining({ status: authorization() ? 415 : 401 }) : refusal);
    expect(response).toMatchObject({ status: body.status, headers: { connection: 'close' } });
    expect(response?.headers['content-type']).toBe('application/json; charset=utf-8');
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

// RFC 9110 section 9.1: a method that is not recognised is 501; what could not be a method at all is no HTTP.
test.each([
  ['that is unknown', `BREW /v1/pets HTTP/1.1\r\n${closing}\r\n`, 501],
  ['in lower case', `get /v1/pets HTTP/1.1\r\n${closing}\r\n`, 501],
  ['of every character that it may have', `A!#$%&'*+-.^_\`|~9 /v1/pets HTTP/1.1\r\n${closing}\r\n`, 501],
  ['that is unknown, with a body', `BREW / HTTP/1.1\r\n${closing}Content-Length: 29\r\n\r\n${rex}`, 501],
  ['with another protocol', `BREW /v1/pets SIP/2.0\r\n${closing}\r\n`, 400],
  ['that is longer than any', `${'BREW'.repeat(20)} /v1/pets HTTP/1.1\r\n${closing}\r\n`, 400],
])('a method %s is answered once, and the connection is closed', async (_what, bytes, status) => {
  const responses = await exchange(store, Buffer.from(bytes, 'latin1'));
  const unknown = {
    code: 'NOT_IMPLEMENTED',
    message: 'This method is not implemented here: there are GET, HEAD, OPTIONS and POST.',
    status: 501,
  };
  expect(responses.map(({ text }) => JSON.parse(text))).toEqual([status === 501 ? unknown : refusal]);
  expect(responses[0]).toMatchObject({ status, headers: { connection: 'close' } });
});

describe('a request', () => {
  const chunked = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n';

  test.each([
    ['a chunk of another size', `5\r\n${rex}\r\n0\r\n\r\n`],
    ['a chunk of a size beyond 2^64', `${'f'.repeat(17)}\r\n`],
  ])('with %s is refused and adds nothing', async (_what, body) => {
    const [response] = await exchange(store, requestText('POST /v1/pets', key + chunked, body));
    expect(JSON.parse(response?.text ?? '')).toEqual(refusal);
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });

  test('of HTTP/1.0 needs no host; one to switch protocols is answered in this one', async () => {
    const upgrade = `Host: x\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n${key}`;
    for (const request of [`GET /v1/pets HTTP/1.0\r\n${key}\r\n`, `GET /v1/pets HTTP/1.1\r\n${upgrade}\r\n`]) {
      expect(await exchange(store, request)).toMatchObject([{ status: 200, text: '[]' }]);
    }
  });

  test('to be a proxy ends the connection', async () => {
    expect(await exchange(store, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n')).toEqual([]);
  });

  test('behind another on one connection is its own, with a key of its own', async () => {
    const first = `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${key}Content-Type: application/json\r\nContent-Length: 29\r\n\r\n${rex}`;
    const responses = await exchange(store, `${first}GET /v1/pets HTTP/1.1\r\n${closing}\r\n`);
    expect(responses.map(({ status }) => status)).toEqual([201, 401]);
  });

  test('hidden in an unread body is not answered', async () => {
    const hidden = `GET /livez HTTP/1.1\r\n${closing}\r\n`;
    for (const line of ['GET /v1/pets', 'POST /v1/nothing', 'PUT /v1/pets']) {
      const length = `Content-Length: ${hidden.length}\r\n`;
      expect(await exchange(store, requestText(line, key + length, hidden))).toHaveLength(1);
    }
  });
});
