import { connect } from 'node:net';
import { openStream, streamsForEach } from '../support/events.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * What only REST does with `Accept: text/event-stream`;
 * test/parity/live.test.ts has what both APIs do.
 */

const store = storeForAll();
const closedAfterwards = streamsForEach(store);
const create = async (name: string) =>
  (
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name, categoryId: 5 },
    })
  ).json;
const get = (
  path: string,
  headers: Record<string, string> = {},
  key = store.key,
) => closedAfterwards(openStream(store, { method: 'GET', path, headers, key }));

test.each([
  'text/event-stream',
  'TEXT/Event-Stream; charset=utf-8',
  'text/event-stream, application/json',
  'application/json;q=0.9, text/event-stream',
  'text/event-stream, */*;q=0.5',
])('the list for Accept: %s is a stream', async (accept) => {
  const { headers } = await get('/v1/pets', { accept });
  expect([headers['content-type'], headers.vary]).toEqual([
    'text/event-stream; charset=utf-8',
    'Accept',
  ]);
});

test.each([
  ['application/json, text/event-stream', 'Accept, accept-encoding'],
  ['text/event-stream;q=0.5, application/json', 'Accept, accept-encoding'],
  ['text/event-stream;q=0', 'Accept, accept-encoding'],
  ['*/*', 'accept-encoding'],
  ['text/*', 'accept-encoding'],
  ['text/html', 'accept-encoding'],
])('the list for Accept: %s is a page', async (accept, vary) => {
  const page = await rest(store, '/v1/pets', { headers: { accept } });
  expect([
    page.status,
    page.headers['content-type'],
    page.headers.vary,
  ]).toEqual([200, 'application/json; charset=utf-8', vary]);
});

test('an event has the bytes of the animal in the list, whatever `limit` is, and no condition turns it into a 304', async () => {
  const path = '/v1/pets?after=0&limit=1';
  await create('"\\\n\r\u2028');
  await create('Rex');
  const { text } = await rest(store, '/v1/pets');
  const [first, second] = text.slice(1, -1).split(/(?<=\}),/);
  const stream = await get(path, { 'if-none-match': '*' });
  await stream.until(2);
  const [one, two] = stream.events.map(({ id }) => id);
  expect(stream.text).toBe(
    `id: 0\n\nid: ${one}\ndata: ${first}\n\nid: ${two}\ndata: ${second}\n\n`,
  );
});

describe('a stream that is not opened has a status:', () => {
  test.each<[string, string, Record<string, string>, string]>([
    [
      'a filter',
      '?status=gone',
      {},
      'status must be one of available, pending, sold.',
    ],
    ['a limit', '?limit=0', {}, 'limit must be an integer between 1 and 100.'],
    [
      'a Last-Event-ID',
      '?after=0',
      { 'last-event-id': '1.0' },
      'Last-Event-ID must be an integer between -9223372036854775808 and 9223372036854775807.',
    ],
  ])('400 for %s', async (_, query, headers, message) => {
    const stream = await get(`/v1/pets${query}`, headers);
    await stream.ended;
    expect([stream.status, stream.headers['content-type']]).toEqual([
      400,
      'application/json; charset=utf-8',
    ]);
    expect(JSON.parse(stream.text)).toEqual({
      code: 'BAD_USER_INPUT',
      message,
      status: 400,
    });
  });

  test('401 for a wrong key, at which EventSource does not try again', async () => {
    const stream = await get('/v1/pets', {}, 'nobody-knows-this-key');
    await stream.ended;
    const body = {
      code: 'UNAUTHENTICATED',
      message: 'The API key is not valid.',
      status: 401,
    };
    expect([stream.status, JSON.parse(stream.text)]).toEqual([401, body]);
  });
});

test('HTTP/1.0 gets the events without chunks', async () => {
  const { id } = await create('Rex');
  const socket = connect(Number(new URL(store.origin).port), '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  const headers = `Authorization: Bearer ${store.key}\r\nAccept: text/event-stream\r\n`;
  socket.write(`GET /v1/pets?after=0 HTTP/1.0\r\n${headers}\r\n`);
  await eventually(async () => text.includes('Rex'));
  socket.destroy();
  const [, events] = text.split('\r\n\r\n');
  expect(events).toBe(
    `id: 0\n\nid: ${id}\ndata: {"id":${id},"name":"Rex","categoryId":5,"status":"available"}\n\n`,
  );
});

test('other operations ignore Accept: text/event-stream', async () => {
  const { id } = await create('Rex');
  const headers = {
    authorization: `Bearer ${store.key}`,
    accept: 'text/event-stream',
  };
  const one = await send(store.origin, { path: `/v1/pets/${id}`, headers });
  expect([one.status, JSON.parse(one.text).name]).toEqual([200, 'Rex']);
});
