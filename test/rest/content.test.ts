import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of how a body comes: its type, coding and size. Over plain sockets: no client sends the half of it. */

const limit = 2048;
let key: string;
const store = storeForAll({ BODY_LIMIT_BYTES: `${limit}` }, async () => {
  key = `Authorization: Bearer ${store.key}\r\n`;
});

const json = 'Content-Type: application/json\r\n';
const chunked = 'Transfer-Encoding: chunked\r\n';
const rex = '{"name":"Rex","categoryId":1}';
const tooLarge = JSON.stringify({ name: 'x'.repeat(limit), categoryId: 1 });
const pet = { id: expect.any(Number), name: 'Rex', categoryId: 1, status: 'available' };
const unsupported = (message: string) => ({ code: 'UNSUPPORTED_MEDIA_TYPE', message, status: 415 });
const notJson = unsupported('The body must be JSON, sent with Content-Type: application/json.');
const notUtf8 = unsupported('The body must be UTF-8, the one charset of JSON.');
const compressed = unsupported('The body must not be compressed: send it without Content-Encoding.');
const payloadTooLarge = { code: 'PAYLOAD_TOO_LARGE', message: `The body has more than ${limit} bytes.`, status: 413 };
const noObject = { code: 'BAD_USER_INPUT', message: 'The body must be a JSON object.', status: 400 };

const length = (body: string | Buffer) => `Content-Length: ${Buffer.byteLength(body)}\r\n`;

/** Posts an animal. @returns every status, and the last body. */
async function post(headers: string, body: string | Buffer = '', path = '/v1/pets') {
  const responses = await exchange(store, requestText(`POST ${path}`, key + headers, body));
  const { headers: last, text = '' } = responses.at(-1) ?? {};
  return { statuses: responses.map(({ status }) => status), headers: last, body: JSON.parse(text) };
}

function inChunks(body: string, size: number, extension = ''): string {
  const pieces = body.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  return `${pieces.map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`).join('')}0\r\n\r\n`;
}

describe('a content type', () => {
  test.each([
    'Application/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; charset=utf8',
    'application/json; version=1',
    'application/json;',
  ])('%s is accepted', async (type) => {
    expect(await post(`Content-Type: ${type}\r\n${length(rex)}`, rex)).toMatchObject({ statuses: [201], body: pet });
  });

  test.each([
    ['no Content-Type', '', notJson],
    ['text/plain', 'Content-Type: text/plain\r\n', notJson],
    ['text that says it is JSON', 'Content-Type: text/plain; application/json\r\n', notJson],
    ['application/problem+json', 'Content-Type: application/problem+json\r\n', notJson],
    ['a form', 'Content-Type: application/x-www-form-urlencoded\r\n', notJson],
    ['two types', 'Content-Type: application/json, text/plain\r\n', notJson],
    ['two headers', json + json, notJson],
    ['Latin-1', 'Content-Type: application/json; charset="iso-8859-1"\r\n', notUtf8],
    ['two charsets', 'Content-Type: application/json; charset=utf-8; charset=utf-7\r\n', notUtf8],
  ])('%s is refused, by both faces', async (_what, header, refusal) => {
    expect(await post(header + length(rex), rex)).toMatchObject({ statuses: [415], body: refusal });
    const { message, ...extensions } = refusal;
    const errors = [{ message, extensions }];
    expect(await post(header + length(rex), rex, '/graphql')).toMatchObject({ statuses: [415], body: { errors } });
  });

  test('without a body no type is asked for', async () => {
    for (const [headers, body] of [[''], [json + length('')], [json + chunked, '0\r\n\r\n']] as Array<
      [string, string?]
    >) {
      expect(await post(headers, body)).toMatchObject({ statuses: [400], body: noObject });
    }
  });
});

describe('a coding', () => {
  test.each([
    ['gzip', gzipSync(rex)],
    ['zstd', zstdCompressSync(rex)],
    ['gzip, identity', gzipSync(rex)],
    ['unheard-of', rex],
  ])('%s is refused', async (coding, body) => {
    const answer = await post(`${json}Content-Encoding: ${coding}\r\n${length(body)}`, body);
    expect(answer).toMatchObject({ statuses: [415], headers: { 'accept-encoding': 'identity' }, body: compressed });
  });

  test('identity is none; a compressed transfer is refused', async () => {
    const answer = await post(`${json}Content-Encoding: identity\r\n${length(rex)}`, rex);
    expect(answer).toMatchObject({ statuses: [201], body: pet });
    const transfer = await post(`${json}Transfer-Encoding: gzip, chunked\r\n`, inChunks(rex, 99));
    expect(transfer).toMatchObject({ statuses: [415], body: compressed });
  });
});

describe('a size', () => {
  test('of exactly the limit is accepted, one byte more is refused', async () => {
    expect(await post(json + length(rex.padEnd(limit)), rex.padEnd(limit))).toMatchObject({ statuses: [201] });
    const more = rex.padEnd(limit + 1);
    expect(await post(json + length(more), more)).toMatchObject({ statuses: [413], body: payloadTooLarge });
  });

  test.each([
    ['announced', length(tooLarge), tooLarge],
    ['announced and never sent', 'Content-Length: 9007199254740993\r\n', ''],
    ['in chunks', chunked, inChunks(tooLarge, 100)],
  ])('too large, %s, is refused by both faces', async (_what, headers, body) => {
    expect(await post(json + headers, body)).toMatchObject({ statuses: [413], body: payloadTooLarge });
    const { message, ...extensions } = payloadTooLarge;
    const errors = [{ message, extensions }];
    expect(await post(json + headers, body, '/graphql')).toMatchObject({ statuses: [413], body: { errors } });
  });

  test.each([
    ['byte by byte', inChunks(rex, 1)],
    ['with extensions', inChunks(rex, 5, ';a="b"')],
    ['with a trailer', `${inChunks(rex, 99).slice(0, -2)}X-Trailer: x\r\n\r\n`],
  ])('in chunks, %s, is accepted', async (_what, body) => {
    expect(await post(json + chunked, body)).toMatchObject({ statuses: [201], body: pet });
  });
});

test('100-continue is met before the body is read, and the body refused all the same; anything else is ignored', async () => {
  const wait = 'Expect: 100-continue\r\n';
  expect(await post(json + wait + length(rex), rex)).toMatchObject({ statuses: [100, 201], body: pet });
  expect(await post(json + wait + length(tooLarge))).toMatchObject({ statuses: [100, 413], body: payloadTooLarge });
  const nobody = await exchange(store, requestText('POST /v1/pets', json + wait + length(rex)));
  expect(nobody.map(({ status }) => status)).toEqual([100, 401]);
  expect(await post(`${json}Expect: 200-ok\r\n${length(rex)}`, rex)).toMatchObject({ statuses: [201], body: pet });
});
