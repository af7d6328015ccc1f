import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/**
 * The edge table of a body's type, coding and size. Over plain sockets, because
 * HTTP clients do not send most of it.
 */

const limit = 2048;
let key: string;
const store = storeForAll({ BODY_LIMIT_BYTES: `${limit}` }, async () => {
  key = `Authorization: Bearer ${store.key}\r\n`;
});

const json = 'Content-Type: application/json\r\n';
const chunked = 'Transfer-Encoding: chunked\r\n';
const rex = '{"name":"Rex","categoryId":1}';
const tooLarge = JSON.stringify({ name: 'x'.repeat(limit), categoryId: 1 });
const pet = {
  id: expect.any(Number),
  name: 'Rex',
  categoryId: 1,
  status: 'available',
};
const unsupported = (message: string) => ({
  code: 'UNSUPPORTED_MEDIA_TYPE',
  message,
  status: 415,
});
const notJson = unsupported(
  'The body must be JSON, sent with Content-Type: application/json.',
);
const notUtf8 = unsupported('The body must be UTF-8, the one charset of JSON.');
const compressed = unsupported(
  'The body must not be compressed: send it without Content-Encoding.',
);
const payloadTooLarge = {
  code: 'PAYLOAD_TOO_LARGE',
  message: `The body has more than ${limit} bytes.`,
  status: 413,
};
const noObject = {
  code: 'BAD_USER_INPUT',
  message: 'The body must be a JSON object.',
  status: 400,
};

const length = (body: string | Buffer) =>
  `Content-Length: ${Buffer.byteLength(body)}\r\n`;

/** Posts an animal. @returns every status, and the last body. */
async function post(
  headers: string,
  body: string | Buffer = '',
  path = '/v1/pets',
) {
  const responses = await exchange(
    store,
    requestText(`POST ${path}`, key + headers, body),
  );
  const { headers: last, text = '' } = responses.at(-1) ?? {};
  return {
    statuses: responses.map(({ status }) => status),
    headers: last,
    body: JSON.parse(text),
  };
}

function inChunks(body: string, size: number, extension = ''): string {
  const pieces = body.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  return `${pieces.map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`).join('')}0\r\n\r\n`;
}

test.each([
  ...[
    'Application/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; charset=utf8',
    'application/json; version=1',
    'application/json;',
  ].map((type) => [`Content-Type: ${type}\r\n${length(rex)}`, rex]),
  [`${json}Content-Encoding: identity\r\n${length(rex)}`, rex],
  [`${json}Expect: 200-ok\r\n${length(rex)}`, rex],
  // Exactly at the limit; byte by byte; with extensions; with a trailer.
  [json + length(rex.padEnd(limit)), rex.padEnd(limit)],
  [json + chunked, inChunks(rex, 1)],
  [json + chunked, inChunks(rex, 5, ';a="b"')],
  [json + chunked, `${inChunks(rex, 99).slice(0, -2)}X-Trailer: x\r\n\r\n`],
])('a body with %j is accepted', async (headers = '', body) => {
  expect(await post(headers, body)).toMatchObject({
    statuses: [201],
    body: pet,
  });
});

test.each([
  ['no type', length(rex), rex, notJson],
  ['text/plain', `Content-Type: text/plain\r\n${length(rex)}`, rex, notJson],
  [
    'text with JSON in its type',
    `Content-Type: text/plain; application/json\r\n${length(rex)}`,
    rex,
    notJson,
  ],
  [
    'application/problem+json',
    `Content-Type: application/problem+json\r\n${length(rex)}`,
    rex,
    notJson,
  ],
  [
    'a form',
    `Content-Type: application/x-www-form-urlencoded\r\n${length(rex)}`,
    rex,
    notJson,
  ],
  [
    'two types',
    `Content-Type: application/json, text/plain\r\n${length(rex)}`,
    rex,
    notJson,
  ],
  ['two headers', json + json + length(rex), rex, notJson],
  [
    'Latin-1',
    `Content-Type: application/json; charset="iso-8859-1"\r\n${length(rex)}`,
    rex,
    notUtf8,
  ],
  [
    'two charsets',
    `Content-Type: application/json; charset=utf-8; charset=utf-7\r\n${length(rex)}`,
    rex,
    notUtf8,
  ],
  [
    'a byte too many',
    json + length(rex.padEnd(limit + 1)),
    rex.padEnd(limit + 1),
    payloadTooLarge,
  ],
  ['too many bytes', json + length(tooLarge), tooLarge, payloadTooLarge],
  [
    'too many that are never sent',
    `${json}Content-Length: 9007199254740993\r\n`,
    '',
    payloadTooLarge,
  ],
  [
    'too many in chunks',
    json + chunked,
    inChunks(tooLarge, 100),
    payloadTooLarge,
  ],
])(
  'a body with %s is refused by both APIs',
  async (_what, headers, body, refusal) => {
    expect(await post(headers, body)).toMatchObject({
      statuses: [refusal.status],
      body: refusal,
    });
    const { message, ...extensions } = refusal;
    const errors = [{ message, extensions }];
    expect(await post(headers, body, '/graphql')).toMatchObject({
      statuses: [refusal.status],
      body: { errors },
    });
  },
);

test('a request without a body needs no content type', async () => {
  for (const [headers, body] of [
    [''],
    [json + length('')],
    [json + chunked, '0\r\n\r\n'],
  ] as Array<[string, string?]>) {
    expect(await post(headers, body)).toMatchObject({
      statuses: [400],
      body: noObject,
    });
  }
});

test.each([
  ['Content-Encoding: gzip', gzipSync(rex)],
  ['Content-Encoding: zstd', zstdCompressSync(rex)],
  ['Content-Encoding: gzip, identity', gzipSync(rex)],
  ['Content-Encoding: unheard-of', rex],
  ['Transfer-Encoding: gzip, chunked', inChunks(rex, 99)],
])('%s is refused', async (coding, body) => {
  const size = coding.startsWith('T') ? '' : length(body);
  const response = await post(`${json}${coding}\r\n${size}`, body);
  expect(response).toMatchObject({
    statuses: [415],
    headers: { 'accept-encoding': 'identity' },
    body: compressed,
  });
});

test('100 Continue is sent before the body is read, and the body may still be refused', async () => {
  const wait = 'Expect: 100-continue\r\n';
  expect(await post(json + wait + length(rex), rex)).toMatchObject({
    statuses: [100, 201],
    body: pet,
  });
  expect(await post(json + wait + length(tooLarge))).toMatchObject({
    statuses: [100, 413],
    body: payloadTooLarge,
  });
  const withoutKey = await exchange(
    store,
    requestText('POST /v1/pets', json + wait + length(rex)),
  );
  expect(withoutKey.map(({ status }) => status)).toEqual([100, 401]);
});
