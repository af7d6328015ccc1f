// runs: embedded, postgres, plugins

import { readsOf, sql } from '../support/database-access.ts';
import {
  follow,
  openStream,
  type SeenEvent,
  streamsForEach,
} from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();
const closedAfterwards = streamsForEach(store);
const following = (
  ...given: Parameters<typeof follow> extends [unknown, ...infer Rest]
    ? Rest
    : never
) => closedAfterwards(follow(store, ...given));
const create = async (name: string, more: object = {}): Promise<string> => {
  const { json } = await rest(store, '/v1/pets', {
    method: 'POST',
    json: { name, categoryId: 5, ...more },
  });
  return `${json.id}`;
};
const eventStream = 'text/event-stream; charset=utf-8';
const complete: SeenEvent = { event: 'complete', id: undefined, data: '' };

describe('a subscription', () => {
  test('works by GET, and has the fields of its selection', async () => {
    // A document with conditions is interpreted, not compiled.
    const query = `subscription S($n: ID, $no: Boolean = true) { ...R }
      fragment R on Subscription { added: petAdded(after: $n) { id name @skip(if: $no) __typename } }`;
    const variables = '{"n":-9223372036854775808}';
    const search = new URLSearchParams({
      query,
      operationName: 'S',
      variables,
    });
    const stream = await closedAfterwards(
      openStream(store, { method: 'GET', path: `/graphql?${search}` }),
    );
    const id = await create('a');
    const [event] = await stream.until(1);
    expect(event?.data).toEqual({ data: { added: { id, __typename: 'Pet' } } });
  });
});

test('of clients that never read, those beyond 64 MiB are cut before their page is made', async () => {
  const before = store.app.subscriptions.delivered;
  const copies = Array.from({ length: 48 }, (_, at) => `c${at}: name`).join(
    ' ',
  );
  const count = 12;
  const last = await create('before');
  for (let at = 0; at < count; at += 1) {
    const query = `subscription { petAdded(after: "${last}") { b${at}: name name ${copies} } }`;
    const accept =
      at % 2 === 0
        ? 'text/event-stream'
        : 'multipart/mixed;subscriptionSpec=1.0';
    const stream = await closedAfterwards(
      openStream(store, { body: { query }, headers: { accept } }),
    );
    stream.outgoing.socket?.pause();
  }
  expect(store.app.subscriptions.count).toBe(count);
  // Their documents differ, so each page has 30 MB of its own.
  const names =
    "select repeat(chr(1), 1000), 1, 'available' from generate_series(1, 100)";
  await sql(
    store.database,
    `insert into pet (name, category_id, status) ${names}`,
    [],
  );
  await eventually(async () => store.app.subscriptions.count <= 3);
  const pages = (store.app.subscriptions.delivered - before) / 100;
  expect(pages).toBeGreaterThan(1);
  // Buffers between server and client have room for some pages more.
  expect(pages).toBeLessThanOrEqual(6);
  const reading = await following({ after: last });
  expect(await reading.until(100)).toHaveLength(100);
});

test('a list whose last subscription has ended is not read', async () => {
  const streams = await Promise.all(
    Array.from({ length: 50 }, () => following()),
  );
  await create('a');
  await Promise.all(streams.map((stream) => stream.until(1)));
  for (const stream of streams) stream.close();
  await eventually(async () => store.app.subscriptions.count === 0);
  const count = await readsOf('pet', store.database, async () => {
    for (const name of ['b', 'c', 'd']) await create(name);
  });
  expect(count).toBe(0);
});

describe('a client that accepts events', () => {
  test.each<[string, string, RegExp, Record<string, string>?]>([
    [
      'subscription { petAdded(after: "1e3") { id } }',
      'BAD_USER_INPUT',
      /^after must be/,
    ],
    [
      'subscription { petAdded { id } }',
      'BAD_USER_INPUT',
      /^Last-Event-ID must be an int/,
      { 'last-event-id': 'x' },
    ],
    ['subscription {', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    [
      'subscription { petAdded { id } b: petAdded { id } }',
      'GRAPHQL_VALIDATION_FAILED',
      /one/,
    ],
    [
      'subscription ($no: Boolean!) { petAdded @skip(if: $no) { id @skip(if: $no) } }',
      'GRAPHQL_VALIDATION_FAILED',
      /^The field of a subscription is neither skipped nor included on a condition\.$/,
    ],
  ])(
    'gets an event with the error of %s, as the protocol requires',
    async (query, code, message, headers) => {
      const stream = await openStream(store, {
        body: { query },
        headers: { ...headers },
      });
      expect(await stream.ended).toBe('whole');
      expect(stream).toMatchObject({
        status: 200,
        headers: { 'content-type': eventStream },
      });
      const error = {
        message: expect.stringMatching(message),
        extensions: { code },
      };
      expect(stream.events).toMatchObject([
        { event: 'next', id: undefined, data: { errors: [error] } },
        complete,
      ]);
    },
  );

  test('gets the result of a query or a mutation as one event', async () => {
    const query =
      'mutation { createPet(input: { name: "Rex", categoryId: 9007199254740993 }) { categoryId } }';
    const created = await openStream(store, { body: { query } });
    expect(await created.ended).toBe('whole');
    const data = { data: { createPet: { categoryId: '9007199254740993' } } };
    expect(created.events).toEqual([
      { event: 'next', id: undefined, data },
      complete,
    ]);
  });

  test('gets a status for a mutation by GET, and for a request without a document', async () => {
    const path =
      '/graphql?query=mutation{createPet(input:{name:"a",categoryId:1}){id}}';
    for (const [request, status] of [
      [{ method: 'GET', path }, 405],
      [{ body: {} }, 400],
    ] as const) {
      const stream = await openStream(store, request);
      await stream.ended;
      expect([
        stream.status,
        JSON.parse(stream.text).errors[0].extensions.status,
      ]).toEqual([status, status]);
    }
  });

  test('gets an event for a wrong key, because its library takes a status for a lost connection', async () => {
    const body = { query: 'subscription { petAdded { id } }' };
    const stream = await openStream(store, {
      body,
      key: 'nobody-knows-this-key',
    });
    expect(await stream.ended).toBe('whole');
    const extensions = { code: 'UNAUTHENTICATED', status: 401 };
    const data = {
      errors: [{ message: 'The API key is not valid.', extensions }],
    };
    expect([stream.status, stream.events]).toEqual([
      200,
      [{ event: 'next', id: undefined, data }, complete],
    ]);
    expect(stream.headers['www-authenticate']).toBe(
      'Bearer error="invalid_token"',
    );
  });
});

test.each([
  ...[undefined, '*/*', 'application/json', 'text/event-stream;q=0, */*'],
  ...[
    'multipart/mixed;deferSpec=20220824, application/json',
    'multipart/*, application/json',
  ],
  // Another version may have another format.
  ...['2.0', '"2.0"', '1.1', '11.0'].map(
    (version) =>
      `multipart/mixed;subscriptionSpec=${version}, application/json`,
  ),
])(
  'a subscription for Accept: %s is refused, and the message names the accepted types',
  async (accept) => {
    const body = { query: 'subscription { petAdded { id } }' };
    const { status, errors } = await graphqlText(store, body, store.key, {
      ...(accept && { accept }),
    });
    const message =
      'A subscription is a stream: send `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';
    expect([status, errors]).toEqual([
      406,
      [{ message, extensions: { code: 'NOT_ACCEPTABLE', status: 406 } }],
    ]);
  },
);

test.each([
  'text/event-stream; charset=utf-8',
  'TEXT/Event-Stream',
  'application/json, text/event-stream;q=0.1',
])('a subscription for Accept: %s is a stream', async (accept) =>
  expect(
    (await following({}, { headers: { accept } })).headers['content-type'],
  ).toBe(eventStream),
);

test('a request for a WebSocket, with or without a key, is refused, and the message names the supported streams', async () => {
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-protocol': 'graphql-transport-ws',
  };
  const message =
    'WebSocket is not supported: send a subscription by POST with `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';
  for (const key of [{}, { authorization: `Bearer ${store.key}` }] as Array<
    Record<string, string>
  >) {
    const { status, text } = await send(store.origin, {
      path: '/graphql',
      headers: { ...upgrade, ...key },
    });
    const extensions = { code: 'NOT_ACCEPTABLE', status: 406 };
    expect([status, JSON.parse(text)]).toEqual([
      406,
      { errors: [{ message, extensions }] },
    ]);
  }
});

test('a query by GET with an event as its response has no ETag: it is not cached, and a 304 would be no stream', async () => {
  const path = `/graphql?query=${encodeURIComponent('{ pets { id } }')}`;
  const headers = {
    authorization: `Bearer ${store.key}`,
    accept: 'text/event-stream',
    'if-none-match': '*',
  };
  const response = await send(store.origin, {
    path,
    headers: { ...headers, 'accept-encoding': 'gzip' },
  });
  const text =
    'event: next\ndata: {"data":{"pets":[]}}\n\nevent: complete\ndata:\n\n';
  expect(response).toMatchObject({
    status: 200,
    text,
    headers: { 'cache-control': 'no-store, no-transform' },
  });
  expect(response.headers).not.toHaveProperty('etag');
});

test('a repeated mutation with an event as its response says so', async () => {
  const query = `mutation { createPet(input: { name: "Rex", categoryId: "1" }) { id } }`;
  const create = () =>
    send(store.origin, {
      method: 'POST',
      path: '/graphql',
      headers: {
        authorization: `Bearer ${store.key}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'idempotency-key': 'as-events',
      },
      body: JSON.stringify({ query }),
    });
  const [first, second] = [await create(), await create()];
  expect(first.text).toContain('"data"');
  expect(second.text).toBe(first.text);
  expect(
    [first, second].map(({ headers }) => [
      headers['content-type'],
      headers['idempotent-replayed'],
    ]),
  ).toEqual([
    [eventStream, undefined],
    [eventStream, 'true'],
  ]);
});

test('the same operation as events and as multipart at a time has the format of each client', async () => {
  const query = 'subscription { petAdded(after: "0") { id name } }';
  const accepted = [
    'text/event-stream',
    'multipart/mixed;subscriptionSpec=1.0',
    'text/event-stream',
  ];
  const streams = await Promise.all(
    accepted.map((accept) =>
      closedAfterwards(
        openStream(store, { body: { query }, headers: { accept } }),
      ),
    ),
  );
  const id = await create('Rex');
  await eventually(async () =>
    streams.every(({ text }) => text.includes('Rex')),
  );
  const result = `{"data":{"petAdded":{"id":"${id}","name":"Rex"}}}`;
  const events = `id: 0\n\nevent: next\nid: ${id}\ndata: ${result}\n\n`;
  const part = (json: string) =>
    `\r\nContent-Type: application/json\r\n\r\n${json}\r\n--graphql`;
  const parts = `\r\n--graphql${part('{}')}${part(`{"payload":${result}}`)}`;
  expect(streams.map(({ text }) => text)).toEqual([events, parts, events]);
});

test('over multipart HTTP a subscription has a part for each animal; queries and errors get JSON', async () => {
  const accept =
    'multipart/mixed;boundary="graphql";subscriptionSpec="1.0",application/json';
  const query = 'subscription { petAdded(after: "0") { id name } }';
  const stream = await closedAfterwards(
    openStream(store, { body: { query }, headers: { accept } }),
  );
  expect(stream.headers).toMatchObject({
    'content-type':
      'multipart/mixed; boundary="graphql"; subscriptionSpec="1.0"',
    'cache-control': 'no-store, no-transform',
  });
  const id = await create('Rex');
  await eventually(async () => stream.text.includes('Rex'));
  const part = (json: string) =>
    `\r\nContent-Type: application/json\r\n\r\n${json}\r\n--graphql`;
  const payload = `{"payload":{"data":{"petAdded":{"id":"${id}","name":"Rex"}}}}`;
  expect(stream.text).toBe(`\r\n--graphql${part('{}')}${part(payload)}`);

  const post = (query: string, key = store.key) =>
    graphqlText(store, { query }, key, { accept });
  expect(await post('{ pets { id } }')).toMatchObject({
    status: 200,
    data: { pets: [{ id }] },
  });
  expect(
    (await post('subscription { nix }')).errors?.[0]?.extensions.code,
  ).toBe('GRAPHQL_VALIDATION_FAILED');
  expect(
    await post('subscription { petAdded { id } }', 'ask_wrong'),
  ).toMatchObject({ status: 401 });
});
