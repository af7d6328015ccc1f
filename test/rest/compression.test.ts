import { stock, stockNames } from '../support/database-access.ts';
import { type HttpRequest, type HttpResponse, send } from '../support/http.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/**
 * Responses are compressed for clients that accept it (RFC 9110 section
 * 12.5.3).
 */

const store = storeForAll();
beforeAll(() => stock(store.database, 100));

const query = JSON.stringify({
  query: '{ pets(limit: 100) { id name categoryId status } }',
});

async function fetched(
  path: string,
  headers: Record<string, string>,
  { origin, ...more }: Partial<Sent> = {},
) {
  const type = more.body && { 'content-type': 'application/json' };
  const sent = { authorization: `Bearer ${store.key}`, ...type, ...headers };
  const method = more.body ? 'POST' : 'GET';
  const response = await send(origin ?? store.origin, {
    method,
    path,
    ...more,
    headers: sent,
  });
  const { 'content-encoding': coding = 'none', 'content-length': length } =
    response.headers;
  return { ...response, coding, length: Number(length) };
}

type Sent = HttpRequest & { origin: string };

const page = '/v1/pets?limit=100';

describe('a page is compressed as Accept-Encoding prefers', () => {
  test.each([
    [undefined, 'none'],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['zstd', 'zstd'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0.1, gzip;q=0.2, zstd;q=0', 'gzip'],
    ['*', 'gzip'],
    ['*;q=0.5', 'gzip'],
    ['x-gzip', 'gzip'],
    ['identity, gzip;q=0.5', 'none'],
    ['deflate', 'none'],
    ['gzip;q=0', 'none'],
    ['*;q=0', 'none'],
    [',,;=;q', 'none'],
    [Array.from({ length: 2000 }, (_, n) => `x${n}`).join(','), 'none'],
    [`${'x'.repeat(12_000)}, gzip`, 'none'],
  ])('%.40s -> %s', async (accepted, coding) => {
    const plain = await fetched(page, {});
    const response = await fetched(
      page,
      accepted === undefined ? {} : { 'accept-encoding': accepted },
    );
    expect([response.status, response.coding, response.text]).toEqual([
      200,
      coding,
      plain.text,
    ]);
    expect(response.headers.vary).toBe('accept-encoding');
    expect(response.length).toBeLessThanOrEqual(
      coding === 'none' ? plain.length : plain.length / 5,
    );
  });
});

test('all codings have one weak ETag, and a request with it gets 304', async () => {
  const responses = await Promise.all(
    ['identity', 'gzip', 'br', 'zstd'].map((coding) =>
      fetched(page, { 'accept-encoding': coding }),
    ),
  );
  const tags = new Set(responses.map(({ headers }) => `${headers.etag}`));
  expect([...tags]).toEqual([expect.stringMatching(/^W\/"[\w+-]+"$/)]);
  const [tag = ''] = tags;
  const again = await fetched(page, {
    'accept-encoding': 'br',
    'if-none-match': tag,
  });
  expect([again.status, again.headers.etag, again.text, again.coding]).toEqual([
    304,
    tag,
    '',
    'none',
  ]);
  expect(again.headers.vary).toBe('accept-encoding');
});

test('HEAD has the headers of GET for a compressed page', async () => {
  const got = await fetched(page, { 'accept-encoding': 'gzip' });
  const head = await fetched(
    page,
    { 'accept-encoding': 'gzip' },
    { method: 'HEAD' },
  );
  const lasting = ({
    headers: { date: _date, 'x-request-id': _id, ...headers },
  }: HttpResponse) => headers;
  expect([head.text, lasting(head)]).toEqual(['', lasting(got)]);
});

test('a response of megabytes is compressed in parts, so that it does not block others', async () => {
  const names = Array.from({ length: 100 }, (_, n) =>
    `${n}`.repeat(5000).slice(0, 9999),
  );
  const [first = ''] = await stockNames(store.database, names);
  const path = `/v1/pets?limit=100&after=${BigInt(first) - 1n}`;
  const plain = await fetched(path, {});
  expect(plain.length).toBeGreaterThan(500_000);
  const responses = await Promise.all(
    ['gzip', 'gzip', 'br', 'zstd', 'gzip'].map((coding) =>
      fetched(path, { 'accept-encoding': coding }),
    ),
  );
  expect(responses.map(({ coding }) => coding)).toEqual([
    'gzip',
    'gzip',
    'br',
    'zstd',
    'gzip',
  ]);
  for (const { text } of responses) expect(text === plain.text).toBe(true);
});

test('GraphQL, failures and documents are compressed from 1 KiB on; a creation is not', async () => {
  const plain = await fetched('/graphql', {}, { body: query });
  const byGet = `/graphql?query=${encodeURIComponent(JSON.parse(query).query)}`;
  for (const [path, more] of [
    ['/graphql', { body: query }],
    [byGet],
  ] as const) {
    const { status, coding, text } = await fetched(
      path,
      { 'accept-encoding': 'br' },
      more,
    );
    expect([status, coding, text]).toEqual([200, 'br', plain.text]);
  }
  expect(
    (await fetched('/v1/pets?limit=3', { 'accept-encoding': 'gzip' })).coding,
  ).toBe('none');
  const long = `{ ${Array.from({ length: 40 }, (_, n) => `unknown${n}`).join(' ')} }`;
  const failure = await fetched(
    '/graphql',
    { 'accept-encoding': 'gzip' },
    { body: JSON.stringify({ query: long }) },
  );
  expect([failure.coding, JSON.parse(failure.text).errors.length]).toEqual([
    'gzip',
    40,
  ]);
  const document = await fetched('/v1/openapi.json', {
    'accept-encoding': 'zstd',
  });
  expect([document.coding, JSON.parse(document.text).openapi]).toEqual([
    'zstd',
    '3.1.0',
  ]);
  const mutation = JSON.stringify({
    query:
      'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }',
  });
  expect(
    (
      await fetched(
        '/graphql',
        { 'accept-encoding': 'gzip' },
        { body: mutation },
      )
    ).coding,
  ).toBe('none');
});

test('a document is compressed once per coding: its length is known, and all requests of a coding get the same bytes', async () => {
  const path = '/schema.graphql';
  const plain = await fetched(path, {});
  for (const coding of ['gzip', 'br', 'zstd']) {
    const [first, second] = [
      await fetched(path, { 'accept-encoding': coding }),
      await rawBody(path, coding),
    ];
    expect([first.status, first.coding, first.text === plain.text]).toEqual([
      200,
      coding,
      true,
    ]);
    // A response that is compressed while it is sent has no length.
    expect(first.length).toBe(second.length);
    expect(first.length).toBeLessThan(plain.length / 2);
    expect(await rawBody(path, coding)).toEqual(second);
  }
});

/** The body as it is sent. */
async function rawBody(path: string, coding: string): Promise<Buffer> {
  return (
    await store.app.inject({
      url: path,
      headers: { 'accept-encoding': coding },
    })
  ).rawPayload;
}

test('COMPRESSION=false leaves compression to the proxy: responses are plain and do not vary by it', async () => {
  await onNode(store, { COMPRESSION: 'false' }, async ({ origin }) => {
    const plain = await fetched(
      page,
      { 'accept-encoding': 'gzip, br, zstd' },
      { origin },
    );
    expect([
      plain.coding,
      plain.headers.vary,
      JSON.parse(plain.text).length,
    ]).toEqual(['none', undefined, 100]);
    const again = await fetched(
      page,
      { 'if-none-match': `${plain.headers.etag}` },
      { origin },
    );
    expect(again.status).toBe(304);
  });
});
