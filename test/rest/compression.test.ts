import { request } from 'node:http';
import { stock, stockNames } from '../support/database-access.ts';
import { textIn } from '../support/http.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/** Answers are smaller for clients that say so (RFC 9110 section 12.5.3). */

const store = storeForAll();
beforeAll(() => stock(store.database, 100));

const query = JSON.stringify({ query: '{ pets(limit: 100) { id name categoryId status } }' });

/** One request, its answer in bytes. @param body makes it a POST to /graphql */
function fetched(path: string, headers: Record<string, string>, { body = '', method = 'GET', origin = '' } = {}) {
  const sent = {
    authorization: `Bearer ${store.key}`,
    ...(body && { 'content-type': 'application/json' }),
    ...headers,
  };
  return new Promise<Fetched>((resolve, reject) => {
    const options = { method: body ? 'POST' : method, headers: sent };
    const outgoing = request(`${origin || store.origin}${path}`, options, async (incoming) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const coding = `${incoming.headers['content-encoding'] ?? 'none'}`;
      const text = textIn(bytes, coding);
      resolve({ status: incoming.statusCode, headers: incoming.headers, bytes, coding, text });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

interface Fetched {
  status: number | undefined;
  headers: Record<string, unknown>;
  bytes: Buffer;
  coding: string;
  text: string;
}

const page = '/v1/pets?limit=100';

describe('a page is compressed as Accept-Encoding prefers', () => {
  test.each([
    [undefined, 'none'],
    ['', 'none'],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['zstd', 'zstd'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0.1, gzip;q=0.2, zstd;q=0', 'gzip'],
    ['*', 'gzip'],
    ['x-gzip', 'gzip'],
    ['identity, gzip;q=0.5', 'none'],
    ['identity;q=0.5, gzip', 'gzip'],
    ['deflate', 'none'],
    ['compress, snappy', 'none'],
    ['gzip;q=0', 'none'],
    ['identity;q=0', 'none'],
    ['*;q=0', 'none'],
    ['gzip;q=nonsense', 'none'],
    [',,;=;q', 'none'],
    [Array.from({ length: 2000 }, (_, n) => `x${n}`).join(','), 'none'],
    [`${'x'.repeat(200)}, gzip`, 'gzip'],
    [`${'x'.repeat(12_000)}, gzip`, 'gzip'],
  ])('%.40s -> %s', async (accepted, coding) => {
    const plain = await fetched(page, {});
    const answer = await fetched(page, accepted === undefined ? {} : { 'accept-encoding': accepted });
    expect([answer.status, answer.coding, answer.text]).toEqual([200, coding, plain.text]);
    expect(answer.headers['content-length']).toBe(`${answer.bytes.length}`);
    expect(answer.headers.vary).toBe('accept-encoding');
    expect(answer.bytes.length).toBeLessThanOrEqual(coding === 'none' ? plain.bytes.length : plain.bytes.length / 5);
  });
});

test('GraphQL, by POST and GET, is compressed as well', async () => {
  const plain = await fetched('/graphql', {}, { body: query });
  const { query: text } = JSON.parse(query);
  for (const answer of [
    await fetched('/graphql', { 'accept-encoding': 'br' }, { body: query }),
    await fetched(`/graphql?query=${encodeURIComponent(text)}`, { 'accept-encoding': 'br' }),
  ]) {
    expect([answer.status, answer.coding, answer.text]).toEqual([200, 'br', plain.text]);
    expect(answer.headers['content-length']).toBe(`${answer.bytes.length}`);
  }
});

test('all codings have one weak entity tag, and with it the answer is 304', async () => {
  const answers = await Promise.all(
    ['identity', 'gzip', 'br', 'zstd'].map((coding) => fetched(page, { 'accept-encoding': coding })),
  );
  const tags = new Set(answers.map(({ headers }) => `${headers.etag}`));
  expect([...tags]).toEqual([expect.stringMatching(/^W\/"[\w+-]+"$/)]);
  const [tag = ''] = tags;
  const again = await fetched(page, { 'accept-encoding': 'br', 'if-none-match': tag });
  expect([again.status, again.headers.etag, again.bytes.length, again.coding]).toEqual([304, tag, 0, 'none']);
  expect(again.headers.vary).toBe('accept-encoding');
});

test('HEAD says of a compressed page what GET says', async () => {
  const got = await fetched(page, { 'accept-encoding': 'gzip' });
  const head = await fetched(page, { 'accept-encoding': 'gzip' }, { method: 'HEAD' });
  const lasting = ({ headers: { date: _date, 'x-request-id': _id, ...headers } }: Fetched) => headers;
  expect([head.bytes.length, lasting(head)]).toEqual([0, lasting(got)]);
});

test('what is below 1 KiB is sent as it is', async () => {
  const answer = await fetched('/v1/pets?limit=3', { 'accept-encoding': 'gzip' });
  expect([answer.coding, JSON.parse(answer.text).length]).toEqual(['none', 3]);
});

test('an answer of megabytes is compressed in parts, without a stop for others', async () => {
  const names = Array.from({ length: 100 }, (_, n) => `${n}`.repeat(5000).slice(0, 9999));
  const [first = ''] = await stockNames(store.database, names);
  const path = `/v1/pets?limit=100&after=${BigInt(first) - 1n}`;
  const plain = await fetched(path, {});
  expect(plain.bytes.length).toBeGreaterThan(500_000);
  const answers = await Promise.all(
    ['gzip', 'gzip', 'br', 'zstd', 'gzip'].map((coding) => fetched(path, { 'accept-encoding': coding })),
  );
  expect(answers.map(({ coding }) => coding)).toEqual(['gzip', 'gzip', 'br', 'zstd', 'gzip']);
  for (const { text } of answers) expect(text === plain.text).toBe(true);
});

test('failures and documents are compressed from 1 KiB on; a creation is not', async () => {
  const long = `{ ${Array.from({ length: 40 }, (_, n) => `unknown${n}`).join(' ')} }`;
  const failure = await fetched('/graphql', { 'accept-encoding': 'gzip' }, { body: JSON.stringify({ query: long }) });
  expect([failure.coding, JSON.parse(failure.text).errors.length]).toEqual(['gzip', 40]);
  const document = await fetched('/v1/openapi.json', { 'accept-encoding': 'zstd' });
  expect([document.coding, JSON.parse(document.text).openapi]).toEqual(['zstd', '3.1.0']);
  expect((await fetched('/graphql', { accept: 'text/html', authorization: '', 'accept-encoding': 'br' })).coding).toBe(
    'br',
  );
  const mutation = JSON.stringify({ query: 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }' });
  expect((await fetched('/graphql', { 'accept-encoding': 'gzip' }, { body: mutation })).coding).toBe('none');
});

test('COMPRESSION=false leaves it to the proxy: nothing is compressed, and nothing varies by it', async () => {
  await onNode(store, { COMPRESSION: 'false' }, async ({ origin }) => {
    const answer = await fetched(page, { 'accept-encoding': 'gzip, br, zstd' }, { origin });
    expect([answer.coding, answer.headers.vary, JSON.parse(answer.text).length]).toEqual(['none', undefined, 100]);
    const again = await fetched(page, { 'if-none-match': `${answer.headers.etag}` }, { origin });
    expect(again.status).toBe(304);
  });
});
