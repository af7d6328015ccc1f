import { stock } from '../support/database-access.ts';
import { describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { onNode, storeForAll } from '../support/store.ts';

/**
 * The `Link` of a page is a URI (RFC 3986) of this service, for any host,
 * address and headers of a client.
 */

let key: string;
const store = storeForAll({}, async () => {
  key = `Authorization: Bearer ${store.key}\r\n`;
  await stock(store.database, 2);
});

const message =
  'The request must have one Host header: a name or address, and a port.';
const badHost = { code: 'BAD_USER_INPUT', message, status: 400 };
const linkTo = (base: string, query = 'limit=1') =>
  `<${base}/v1/pets?${query}&after=1>; rel="next"`;

describe('a host', () => {
  const withHosts = (hosts: string, line = 'GET /v1/pets?limit=1') =>
    exchange(
      store,
      Buffer.from(
        `${line} HTTP/1.1\r\n${hosts}Connection: close\r\n${key}\r\n`,
        'latin1',
      ),
    );

  test.each([
    ['shop.example', 'http://shop.example'],
    ['127.0.0.1:80', 'http://127.0.0.1:80'],
    ['[::1]:4000', 'http://[::1]:4000'],
    ['shop.example:', 'http://shop.example:'],
    ['', 'http://localhost'],
  ])('%s leads to links to %s', async (host, origin) => {
    const [response] = await withHosts(`Host: ${host}\r\n`);
    expect([response?.status, response?.headers.link]).toEqual([
      200,
      linkTo(origin),
    ]);
  });

  test.each([
    '',
    'Host: a.example\r\nHost: b.example\r\n',
    ...[
      'a.example, b.example',
      'a>; rel="next", <b',
      'a.example/b',
      'user:password@a.example',
      'sh\xf6p.example',
    ],
    ...[
      '[::::]',
      '999.1.1.1',
      '127.0.0.1:99999',
      'a'.repeat(254),
      `[${':'.repeat(1000)}]`,
    ],
  ])('%j is refused by both APIs', async (given) => {
    const lines =
      given === '' || given.startsWith('Host') ? given : `Host: ${given}\r\n`;
    const [rest, ...others] = await withHosts(lines);
    expect([JSON.parse(rest?.text ?? ''), rest?.headers.link, others]).toEqual([
      badHost,
      undefined,
      [],
    ]);
    const [graphql] = await withHosts(lines, 'GET /graphql?query={__typename}');
    const extensions = { code: 'BAD_USER_INPUT', status: 400 };
    expect(JSON.parse(graphql?.text ?? '')).toEqual({
      errors: [{ message, extensions }],
    });
  });

  test('that is missing is refused also by a process that has written no link yet', async () => {
    // Another instance of the module, as a new process has it.
    const { isHost } = await import(
      `${import.meta.resolve('#engine/api/http/routes.js')}?new`
    );
    expect([' ', '', 'shop.example'].map(isHost)).toEqual([false, true, true]);
  });

  test('that would break out of a link is not part of the link of a refusal', async () => {
    const request =
      'GET /v1/pets/1 HTTP/1.1\r\nHost: a>; rel="x", <b\r\nConnection: close\r\n\r\n';
    const [response] = await exchange(store, request);
    expect(response?.headers.link).toBe(
      '<http://localhost/v1/pets>; rel="successor-version"',
    );
  });
});

test.each(['http://evil.example', 'HTTPS://EVIL.example:1'])(
  'an address in absolute form (%s) needs a key, and leads to links to its path alone',
  async (origin) => {
    const line = `GET ${origin}/v1/pets?limit=1`;
    const [without] = await exchange(store, requestText(line));
    expect(without?.status).toBe(401);
    const [response] = await exchange(store, requestText(line, key));
    expect([response?.status, response?.headers.link]).toEqual([
      200,
      linkTo('http://store.example'),
    ]);
    expect(JSON.stringify(response?.headers)).not.toMatch(/evil/i);
  },
);

test.each([
  ['x={}|^`\\', 'x=%7B%7D%7C%5E%60%5C'],
  ['x=%zz%7b', 'x=%25zz%7B'],
  ["x=a:b/c?d@e!$'()*+,;f", 'x=a%3Ab%2Fc%3Fd%40e%21%24%27%28%29*+%2C%3Bf'],
  [
    'x=>;rel="next",<http://evil.example>',
    'x=%3E%3Brel%3D%22next%22%2C%3Chttp%3A%2F%2Fevil.example%3E',
  ],
  ['x=%0d%0aX-Injected:1', 'x=%0D%0AX-Injected%3A1'],
  // A second question mark removes no filter.
  ['x=?&status=available', 'x=%3F&status=available'],
  ['?status=sold&x=1', '%3Fstatus=sold&x=1'],
])('the query ?%s is linked as ?%s', async (sent, linked) => {
  const [page] = await exchange(
    store,
    requestText(`GET /v1/pets?${sent}&limit=1`, key),
  );
  expect(page?.headers.link).toBe(
    linkTo('http://store.example', `${linked}&limit=1`),
  );
  expect(page?.headers).not.toHaveProperty('x-injected');
});

test('the link of a later page has one `after`, however the client has spelled it', async () => {
  const [page] = await exchange(
    store,
    requestText('GET /v1/pets?%61fter=0&x=1&limit=1', key),
  );
  const links = [
    '<http://store.example/v1/pets?x=1&limit=1&after=1>; rel="next"',
    '<http://store.example/v1/pets?x=1&limit=1&before=1>; rel="prev"',
  ];
  expect(page?.headers.link).toBe(links.join(', '));
});

test('two links that exceed the headers of a client are one', async () => {
  for (const [length, rels] of [
    [5000, ['next', 'prev']],
    [7000, ['next']],
  ] as const) {
    const path = `GET /v1/pets?after=0&x=${'x'.repeat(length)}&limit=1`;
    const [page] = await exchange(store, requestText(path, key));
    const sent = `${page?.headers.link}`.matchAll(/rel="(\w+)"/g);
    expect([...sent].map(([, rel]) => rel)).toEqual(rels);
  }
});

describe('a host in the headers of a proxy', () => {
  const link = async (
    headers: Record<string, string>,
    { origin }: { origin: string },
  ) => {
    const lines = Object.entries(headers).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const [response] = await exchange(
      { origin },
      requestText('GET /v1/pets?limit=1', key + lines.join('')),
    );
    return response?.headers.link;
  };
  const claims = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-prefix': '/evil',
    'x-original-url': '/evil',
    'x-rewrite-url': '/evil',
    'x-host': 'evil.example',
    forwarded: 'host=evil.example;proto=https',
  };
  test.each<Record<string, string>>([{}, { TRUST_PROXY: '192.0.2.1' }])(
    'is ignored from a client that is not trusted: %j',
    async (env) => {
      await onNode(store, env, async (node) =>
        expect(await link(claims, node)).toBe(linkTo('http://store.example')),
      );
    },
  );

  test('is used from a trusted proxy, except where it would break out of the link', async () => {
    const plain =
      /^<https?:\/\/[\w.:-]+\/v1\/pets\?limit=1&after=1>; rel="next"$/;
    await onNode(store, { TRUST_PROXY: '127.0.0.1' }, async (node) => {
      for (const host of [
        'evil.example>',
        'a"b',
        'a/b',
        'a@b',
        'javascript:alert(1)',
      ]) {
        expect(await link({ 'x-forwarded-host': host }, node)).toMatch(plain);
      }
      for (const proto of ['javascript', 'https://evil.example/', 'a>b']) {
        expect(await link({ 'x-forwarded-proto': proto }, node)).toMatch(plain);
      }
    });
  });

  // RFC 7239's Forwarded is passed on by most proxies as the client wrote it.
  test.each([
    [
      { 'x-forwarded-host': 'shop.example', 'x-forwarded-proto': 'https' },
      'https://shop.example',
    ],
    [{ 'x-forwarded-for': '192.0.2.1' }, 'http://store.example'],
  ])(
    'is the one in %j, and Forwarded is ignored',
    async (written, expected) => {
      for (const TRUST_PROXY of ['1', '127.0.0.1']) {
        await onNode(store, { TRUST_PROXY }, async (node) => {
          for (const forwarded of [
            'host=evil.example;proto=https',
            'for=192.0.2.1;host=evil.example',
            '"',
          ]) {
            expect(await link({ ...written, forwarded }, node)).toBe(
              linkTo(expected),
            );
          }
        });
      }
    },
  );
});
