import { createSecret } from '#engine/access/keys/secret.js';
import { stock } from '../support/database-access.ts';
import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/**
 * The table of request headers: each is read by the grammar of its RFC (lists,
 * quoted strings, parameters, weights, empty elements). Over plain sockets,
 * because HTTP clients do not send most of it.
 */

const store = storeForAll({}, () => stock(store.database, 30));
const direct = nodeForAll(store, { TRUST_PROXY: '1' });
const chained = nodeForAll(store, { TRUST_PROXY: '2' });
const ranges = 'loopback, 10.0.0.0/8, fd00::/8';
const local = nodeForAll(store, { TRUST_PROXY: ranges });
// Its addresses are refused after three wrong keys, so no other test asks it.
const limited = nodeForAll(store, {
  TRUST_PROXY: ranges,
  AUTH_FAILURES_PER_MINUTE: '3',
});

interface Sent {
  method?: string;
  path?: string;
  body?: string;
  to?: { origin: string };
}

async function send(
  headers: string[],
  { method = 'GET', path = '/v1/pets', body = '', to = store }: Sent = {},
) {
  const all = [`Authorization: Bearer ${store.key}`, ...headers];
  if (body) all.push(`Content-Length: ${Buffer.byteLength(body)}`);
  const lines = all.map((line) => `${line}\r\n`).join('');
  const bytes = requestText(`${method} ${path}`, lines, body);
  const [response] = await exchange(to, bytes, method);
  if (!response) throw new Error('no response');
  return response;
}

const typeOf = ({ headers }: { headers: Record<string, string> }) =>
  headers['content-type']?.replace(/;.*/, '');

const json = 'application/json';
const result = 'application/graphql-response+json';

describe('Accept (RFC 9110, section 12.5.1) at /graphql', () => {
  const query = { path: '/graphql?query=%7B__typename%7D' };
  test.each([
    ['', json],
    [' ', json],
    [',', json],
    [', ,', json],
    ['*', json],
    ['*/*', json],
    ['application/*', json],
    [json, json],
    ['Application/JSON', json],
    [`${json};charset=utf-8`, json],
    [`${json}; charset=utf8`, json],
    [`${json}; charset="UTF-8"`, json],
    [`${json};odata=verbose`, json],
    [`${json};version=1`, json],
    [`${json};indent=4`, json],
    [`${json}; a="b;q=0"`, json],
    [`${json}; a="b, ${result}"`, json],
    [`${json}; a="\\", ${result};q=1"`, json],
    [`${json}; a="unclosed`, json],
    [`${json} ; q=0.5`, json],
    [`${json};q=`, json],
    [`${json};q=high`, json],
    [`${json};`, json],
    [`${json};;version=1`, json],
    [`,${json},`, json],
    [`text/html, ${json};q=0.1`, json],
    [`${json}, ${result}`, json],
    [`${json};q=0.9, ${result}`, result],
    [`${json};Q=0.9, ${result};q=1.0`, result],
    [`${json};q=.9,${result}`, result],
    [`${json};q="0.1", ${result};q=0.2`, result],
    [`${result}; charset=utf8`, result],
    [`${result}, ${json};q=0`, result],
    [`${json};q=0, */*`, result],
    [`${json};version=1;q=0, */*;q=0.1`, result],
    ['text/html, image/gif, *; q=.2, */*; q=.2', json],
    [`text/event-stream;q=0, ${json}`, json],
    [`text/html, ${'x/y, '.repeat(200)}`, json],
  ])('%j: %s', async (accept, type) => {
    const response = await send([`Accept: ${accept}`], query);
    expect([response.status, typeOf(response)]).toEqual([200, type]);
  });

  test.each([
    'text/html',
    `${json};q=0`,
    `${json};q=0.000`,
    `${json};version=1;q=0`,
    `*/*;q=0`,
    'nonsense',
    `text/html; a=", ${json}"`,
    `text/html; a="${json}"`,
  ])('%j: 406', async (accept) => {
    // A browser's navigation gets the page: not with a key.
    expect((await send([`Accept: ${accept}`], query)).status).toBe(406);
  });

  const document = 'subscription { petAdded(after: "0") { id } }';
  const subscription = {
    path: `/graphql?query=${encodeURIComponent(document)}`,
    method: 'HEAD',
  };
  test.each([
    ['text/event-stream', 'text/event-stream'],
    ['Text/Event-Stream; charset=utf-8', 'text/event-stream'],
    ['text/event-stream;version=1', 'text/event-stream'],
    ['multipart/mixed;subscriptionSpec=1.0', 'multipart/mixed'],
    ['multipart/mixed; subscriptionSpec="1.0"', 'multipart/mixed'],
    ['multipart/mixed;boundary="a,b";subscriptionSpec=1.0', 'multipart/mixed'],
    [`${json}, multipart/mixed;subscriptionSpec=1.0`, 'multipart/mixed'],
  ])('of a subscription %j: %s', async (accept, type) => {
    const response = await send([`Accept: ${accept}`], subscription);
    expect([response.status, typeOf(response)]).toEqual([200, type]);
  });
});

describe('Accept of a list', () => {
  test.each([
    ['', json],
    [`${json}, text/event-stream`, json],
    ['*/*', json],
    ['text/event-stream;q=0', json],
    [`text/event-stream;q=0.5, ${json};version=1`, json],
    ['text/event-stream;version=1', 'text/event-stream'],
    [`${json};q=0.5, text/event-stream; charset="utf-8"`, 'text/event-stream'],
    ['text/event-stream, */*;q=0.1', 'text/event-stream'],
  ])('%j: %s', async (accept, type) => {
    const response = await send([`Accept: ${accept}`], { method: 'HEAD' });
    expect([response.status, typeOf(response)]).toEqual([200, type]);
  });
});

describe('Content-Type (RFC 9110, section 8.3) of a body', () => {
  const post = (type: string, path = '/v1/pets') =>
    send(type === 'none' ? [] : [`Content-Type: ${type}`], {
      method: 'POST',
      path,
      body:
        path === '/graphql'
          ? '{"query":"{__typename}"}'
          : '{"name":"Rex","categoryId":1}',
    });
  test.each([
    json,
    'Application/JSON',
    `${json};`,
    `${json} ;charset=utf-8`,
    `${json};charset=utf-8`,
    `${json}; charset=UTF8`,
    `${json}; charset="utf-8"`,
    `${json}; CHARSET=utf-8`,
    `${json}; charset=`,
    `${json}; charset=""`,
    `${json}; version=1; charset=utf-8`,
    `${json}; profile="x; charset=latin1"`,
    `${json}; profile="\\"; charset=latin1"`,
    `${json}; profile="a, b"`,
    `${json};;charset=utf-8;`,
    `${json}; charset=utf-8; charset=utf8`,
  ])('%j is JSON', async (type) => {
    expect((await post(type)).status).toBe(201);
    expect((await post(type, '/graphql')).status).toBe(200);
  });

  test.each([
    'none',
    '',
    ',',
    'text/plain',
    'json',
    `${json}, ${json}`,
    `text/plain; a="${json}"`,
    `${json}+x`,
    `${json}; charset=latin1`,
    `${json}; charset="iso-8859-1"`,
    `${json}; charset=utf-16`,
    `${json}; charset=utf-8; charset=latin1`,
    `${json}; a="x"; charset=latin1`,
  ])('%j is 415', async (type) => {
    expect((await post(type)).status).toBe(415);
    expect((await post(type, '/graphql')).status).toBe(415);
  });

  const query = '/graphql?query=%7B__typename%7D';
  test.each([
    ['', 200],
    [`${json};charset=utf8`, 200],
    ['text/plain', 415],
  ])('%j of a GET: %i', async (type, status) => {
    const headers = [`Content-Type: ${type}`];
    expect((await send(headers, { path: query })).status).toBe(status);
  });
});

test.each([
  ['', 201],
  ['identity', 201],
  ['Identity, ,identity', 201],
  ['gzip', 415],
  ['identity, br', 415],
])('Content-Encoding: %j is %i', async (coding, status) => {
  const headers = [`Content-Type: ${json}`, `Content-Encoding: ${coding}`];
  const body = '{"name":"Rex","categoryId":1}';
  const response = await send(headers, { method: 'POST', body });
  expect(response.status).toBe(status);
});

describe('Accept-Encoding (RFC 9110, section 12.5.3)', () => {
  test.each([
    ['', undefined],
    [',', undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['*', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['gzip, deflate, br, zstd', 'zstd'],
    [',gzip,', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0.000, identity', undefined],
    ['gzip; q=0, *', undefined],
    ['*;q=0', undefined],
    ['*;q=0, br', 'br'],
    ['zstd;q=0, br;q=0, *;q=0.1', undefined],
    ['br;q=0.5, gzip', 'gzip'],
    ['br;Q=0.5, gzip;Q=0.4', 'br'],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0, *;q=0', undefined],
    ['deflate', undefined],
    ['gzip;a="x, br"', undefined],
    [`${'x, '.repeat(300)}gzip`, undefined],
  ])('%j: %s', async (accepted, coding) => {
    const headers = [`Accept-Encoding: ${accepted}`];
    const response = await send(headers, { method: 'HEAD' });
    expect(response.headers['content-encoding']).toBe(coding);
  });
});

describe('Prefer (RFC 7240, section 2)', () => {
  test.each([
    'count=exact',
    'Count=EXACT',
    'count = exact',
    'count="exact"',
    'count=exact; a=1',
    'return=minimal, count=exact',
    ', ,count=exact,',
    'respond-async; wait=5, count=exact',
    'a="b, c", count=exact',
    'a="\\"", count=exact',
    'count=exact, count=none',
    'return=minimal\r\nPrefer: count=exact',
  ])('%j asks for the total', async (prefer) => {
    const { headers } = await send([`Prefer: ${prefer}`]);
    expect(headers).toMatchObject({ 'preference-applied': 'count=exact' });
  });

  test('two that count are named once in Vary', async () => {
    const { headers } = await send(['Prefer: count=exact, handling=strict']);
    expect(headers).toMatchObject({
      vary: 'Prefer, accept-encoding',
      'preference-applied': 'handling=strict, count=exact',
    });
  });

  test.each([
    '',
    ',',
    'count',
    'count=',
    'count=""',
    'count=planned',
    'count=exactly',
    'xcount=exact',
    'a; count=exact',
    '; ; count=exact',
    'a="count=exact"',
    '"count=exact"',
    'count=ex act',
    'count=ex"act"',
    'a="b, count=exact"',
    'a="b, count=exact, c"',
    'a="\\", count=exact"',
    'count=planned, count=exact',
  ])('%j does not', async (prefer) => {
    const { headers } = await send([`Prefer: ${prefer}`]);
    expect(headers).not.toHaveProperty('preference-applied');
  });
});

describe('If-None-Match (RFC 9110, section 13.1.2)', () => {
  test.each([
    [(tag: string) => tag, 304],
    [(tag: string) => tag.slice(2), 304],
    [(tag: string) => `"x", ${tag}`, 304],
    [(tag: string) => `"x",${tag},"y"`, 304],
    [(tag: string) => `, ,${tag},`, 304],
    [(tag: string) => `"a, b", ${tag}`, 304],
    [(tag: string) => `"a\\", ${tag}`, 304],
    [(tag: string) => `"x"\r\nIf-None-Match: ${tag}`, 304],
    [() => '*', 304],
    [() => '', 200],
    [() => '"*"', 200],
    [() => '"x", W/"y"', 200],
    [(tag: string) => `"x${tag.slice(3)}`, 200],
    [(tag: string) => tag.replaceAll('"', ''), 200],
  ])('%s: %i', async (field, status) => {
    const { headers } = await send([]);
    const condition = `If-None-Match: ${field(`${headers.etag}`)}`;
    expect((await send([condition])).status).toBe(status);
  });
});

describe('Last-Event-ID (WHATWG HTML, section 9.2.4)', () => {
  const accept = 'Accept: text/event-stream';
  test.each([
    ['Last-Event-ID: 1', 200],
    ['Last-Event-ID:   1  ', 200],
    ['Last-Event-ID:', 200],
    ['Last-Event-ID:  ', 200],
    ['Last-Event-ID: x', 400],
    ['Last-Event-ID: 1, 2', 400],
    ['Last-Event-ID: 9223372036854775808', 400],
  ])('%j: %i', async (line, status) => {
    const response = await send([accept, line], { method: 'HEAD' });
    expect(response.status).toBe(status);
  });
});

describe('Idempotency-Key (a string of RFC 9651)', () => {
  test.each([
    ['abc', 201],
    ['"abc"', 201],
    ['"abc";a=1', 201],
    ['"a\\"b"', 201],
    ['', 400],
    ['""', 400],
    ['"abc', 400],
    ['"abc" x', 400],
    ['"a b"', 400],
  ])('%j: %i', async (key, status) => {
    const headers = [`Content-Type: ${json}`, `Idempotency-Key: ${key}`];
    const body = '{"name":"Rex","categoryId":1}';
    const response = await send(headers, { method: 'POST', body });
    expect(response.status).toBe(status);
  });
});

test.each(['websocket', 'WebSocket', 'h2c, websocket', ',websocket'])(
  'Upgrade: %s names WebSocket',
  async (upgrade) => {
    const headers = ['Connection: Upgrade', `Upgrade: ${upgrade}`];
    expect((await send(headers, { path: '/graphql' })).status).toBe(406);
  },
);

describe('X-Forwarded-*', () => {
  const to = { direct, chained, local };
  const both = 'X-Forwarded-For: 192.0.2.1, 10.0.0.1';
  test.each<[keyof typeof to, string[], string]>([
    ['direct', [], 'http://store.example'],
    ['direct', ['Proto: https'], 'https://store.example'],
    ['direct', ['Proto: HTTPS'], 'HTTPS://store.example'],
    ['direct', ['Proto: https, http'], 'http://store.example'],
    ['direct', ['Proto: ,https,'], 'https://store.example'],
    ['direct', ['Proto:'], 'http://store.example'],
    ['direct', ['Proto: wss'], 'http://store.example'],
    ['direct', ['Host: shop.example'], 'http://shop.example'],
    ['direct', ['Host: a.example, b.example'], 'http://b.example'],
    ['direct', ['Host:'], 'http://store.example'],
    ['direct', ['Host: shop.example:8443'], 'http://shop.example:8443'],
    ['direct', ['Port: 8443'], 'http://store.example:8443'],
    [
      'direct',
      ['Host: shop.example', 'Port: 8080'],
      'http://shop.example:8080',
    ],
    ['direct', ['Host: a.example:1', 'Port: 8080'], 'http://a.example:1'],
    ['direct', ['Host: [::1]', 'Port: 8080'], 'http://[::1]:8080'],
    ['direct', ['Proto: https', 'Port: 443'], 'https://store.example'],
    ['direct', ['Proto: https', 'Port: 80'], 'https://store.example'],
    ['direct', ['Port: 80'], 'http://store.example'],
    ['direct', ['Port: 99999'], 'http://store.example'],
    ['direct', ['Port: x'], 'http://store.example'],
    ['direct', ['Port: 1, 8080'], 'http://store.example:8080'],
    ['direct', ['Prefix: /store'], 'http://store.example/store'],
    ['direct', ['Prefix: /store/'], 'http://store.example/store'],
    ['direct', ['Prefix: /'], 'http://store.example'],
    ['direct', ['Prefix: /a, /b'], 'http://store.example/b'],
    ['direct', ['Prefix: //evil.example'], 'http://store.example/evil.example'],
    ['chained', ['Proto: https, http'], 'https://store.example'],
    ['chained', ['Proto: https,http', both], 'https://store.example'],
    ['chained', ['Proto: x, https, http'], 'https://store.example'],
    ['chained', ['Proto: https'], 'https://store.example'],
    ['chained', ['Host: a.example, b.example'], 'http://a.example'],
    ['chained', ['Host: x, a.example, b.example'], 'http://a.example'],
    ['chained', ['Port: 8443, 80'], 'http://store.example:8443'],
    ['chained', ['Prefix: /a, /b/'], 'http://store.example/a/b'],
    ['local', ['Host: a.example, b.example'], 'http://b.example'],
    ['local', ['Host: a.example, b.example', both], 'http://a.example'],
    ['local', ['Proto: https, http', both], 'https://store.example'],
    [
      'local',
      ['Proto: https, http', 'X-Forwarded-For: 192.0.2.1:1, 10.0.0.1:4711'],
      'https://store.example',
    ],
    [
      'local',
      ['Proto: https, http', 'X-Forwarded-For: "[2001:db8::1]:1", [fd00::1]:2'],
      'https://store.example',
    ],
    [
      'local',
      [
        `Proto: ${'x,'.repeat(1500)}https, http`,
        `X-Forwarded-For: ${'x,'.repeat(1500)}192.0.2.1, 10.0.0.1`,
      ],
      'https://store.example',
    ],
    [
      'local',
      ['Proto: https, http', 'X-Forwarded-For: 10.0.0.1, 192.0.2.1'],
      'http://store.example',
    ],
  ])('to %s with %j: %s', async (name, lines, origin) => {
    const headers = lines.map((line) =>
      line.replace(/^(?!X-)/, 'X-Forwarded-'),
    );
    const path = '/v1/pets?limit=1';
    const { headers: received } = await send(headers, { path, to: to[name] });
    expect(received.link).toMatch(/^<([^?]*)\/v1\/pets\?/);
    expect(received.link?.split('/v1/pets')[0]?.slice(1)).toBe(origin);
  });

  test.each([
    (port: number) => `192.0.2.7:4000${port}`,
    (port: number) => `[2001:db8::7]:4000${port}`,
    (port: number) => `"[2001:db8:0:1::7]:4000${port}"`,
    (port: number) => `198.51.100.1, 192.0.2.8:4000${port}, 10.0.0.1:1`,
    (port: number) => `,192.0.2.9:${port} ,`,
  ])(
    'wrong keys of one address count, whatever its port is: %s',
    async (of) => {
      const statuses: number[] = [];
      for (let port = 1; port <= 5; port += 1) {
        const lines = [
          `Authorization: Bearer ${createSecret()}`,
          `X-Forwarded-For: ${of(port)}`,
        ];
        const text = lines.map((line) => `${line}\r\n`).join('');
        const [response] = await exchange(
          limited,
          requestText('GET /v1/pets', text),
        );
        statuses.push(response?.status ?? 0);
      }
      expect(statuses).toEqual([401, 401, 401, 429, 429]);
    },
  );
});
