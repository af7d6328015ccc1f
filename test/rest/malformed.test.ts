import { once } from 'node:events';
import { browserMethods } from '../support/contract.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { closing, exchange, requestText } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';
import { withClock } from '../support/wrong-keys.ts';

/**
 * Bytes that are no HTTP request, request smuggling, and requests that are
 * refused before their body has arrived.
 */

let key: string;
let reader: string;
// After this time, a connection that is kept open by mistake gets a second
// response.
const store = storeForAll({ REQUEST_TIMEOUT_MS: '5000' }, async () => {
  key = `Authorization: Bearer ${store.key}\r\n`;
  const issued = await store.keys.issue({ name: 'reader', scope: 'read' });
  reader = `Authorization: Bearer ${issued.key}\r\n`;
});

beforeEach(() => store.empty());

const refusal = {
  code: 'BAD_USER_INPUT',
  message: 'This is not a well-formed HTTP/1.1 request.',
  status: 400,
};
const rex = '{"name":"Rex","categoryId":1}';

const head = 'POST /v1/pets HTTP/1.1\r\nHost: a\r\n';
const length = (...values: string[]) =>
  `${head}${values.map((value) => `Content-Length: ${value}\r\n`).join('')}\r\n`;
const coded = (value: string) => `${head}Transfer-Encoding: ${value}\r\n\r\n`;
const creation = () =>
  `${head}${key}Content-Type: application/json\r\nContent-Length: ${rex.length}\r\n\r\n${rex}`;
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
    [
      'raw UTF-8 in the path',
      'GET /v1/pets/\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n',
    ],
    ['a space before a colon', `${head}Transfer-Encoding : chunked\r\n\r\n`],
    ['a folded header', `${head}A: b\r\n Transfer-Encoding: chunked\r\n\r\n`],
    [
      'a bare line feed between headers',
      `${head}A: b\nContent-Length: 0\r\n\r\n`,
    ],
    [
      'a bare carriage return in a header',
      `${head}A: b\rContent-Length: 0\r\n\r\n`,
    ],
    ['U+0000 in a header', `${head}A: b\0c\r\n\r\n`],
    ['a header without a colon', `${head}A\r\n\r\n`],
    ['two lengths', length('0', '5')],
    ['the same length twice', length('0', '0')],
    ['a list of lengths', length('0, 5')],
    ['a negative length', length('-1')],
    ['a length that is none', length('five')],
    ['a length beyond 2^64', length('99999999999999999999999')],
    [
      'chunks beside a length',
      `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`,
    ],
    ['chunks not last', `${coded('chunked, gzip')}0\r\n\r\n`],
    // Where only the body is broken, the headers are judged before it: the key
    // first, then the media type.
    ['an unknown transfer', `${coded('xchunked')}0\r\n\r\n`],
    ['a chunk size that is none', chunked('z\r\n\r\n')],
    ['a chunk size that overflows', chunked('10000000000000000\r\n\r\n')],
    ['a bare line feed after a chunk size', chunked('0\n\n')],
  ])(
    '%s gets one response, and the request behind it is not run',
    async (what, bytes) => {
      const first = bytes.replace(
        'Host: a\r\n',
        `Host: a\r\n${authorization()}`,
      );
      const [response, ...others] = await withClock(async () => {
        // The key must be known: during its look-up the parser would respond
        // first.
        await rest(store, '/v1/pets');
        return exchange(store, Buffer.from(first + creation(), 'latin1'));
      });
      const body = JSON.parse(response?.text ?? '');
      expect(others).toEqual([]);
      const isBody = /unknown transfer|chunk size/.test(what);
      expect(body).toEqual(
        isBody
          ? expect.objectContaining({ status: authorization() ? 415 : 401 })
          : refusal,
      );
      expect(response).toMatchObject({
        status: body.status,
        headers: { connection: 'close' },
      });
      expect(response?.headers['content-type']).toBe(
        'application/json; charset=utf-8',
      );
      expect((await rest(store, '/v1/pets')).json).toEqual([]);
    },
  );
});

// RFC 9110 section 9.1: an unknown method is 501; bytes that cannot be a method
// are no HTTP.
test.each([
  ['that is unknown', `BREW /v1/pets HTTP/1.1\r\n${closing}\r\n`, 501],
  ['in lower case', `get /v1/pets HTTP/1.1\r\n${closing}\r\n`, 501],
  [
    'of every character that it may have',
    `A!#$%&'*+-.^_\`|~9 /v1/pets HTTP/1.1\r\n${closing}\r\n`,
    501,
  ],
  [
    'that is unknown, with a body',
    `BREW / HTTP/1.1\r\n${closing}Content-Length: 29\r\n\r\n${rex}`,
    501,
  ],
  ['with another protocol', `BREW /v1/pets SIP/2.0\r\n${closing}\r\n`, 400],
  [
    'that is longer than any',
    `${'BREW'.repeat(20)} /v1/pets HTTP/1.1\r\n${closing}\r\n`,
    400,
  ],
])(
  'a method %s gets one response, and the connection is closed',
  async (_what, bytes, status) => {
    const responses = await exchange(store, Buffer.from(bytes, 'latin1'));
    const unknown = {
      code: 'NOT_IMPLEMENTED',
      message: `This method is not implemented here: there are ${browserMethods('OPTIONS')}.`,
      status: 501,
    };
    expect(responses.map(({ text }) => JSON.parse(text))).toEqual([
      status === 501 ? unknown : refusal,
    ]);
    expect(responses[0]).toMatchObject({
      status,
      headers: { connection: 'close' },
    });
  },
);

describe('a request', () => {
  const inChunks =
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n';

  test.each([
    ['a chunk of another size', `5\r\n${rex}\r\n0\r\n\r\n`],
    ['a chunk of a size beyond 2^64', `${'f'.repeat(17)}\r\n`],
  ])('with %s is refused and adds no animal', async (_what, body) => {
    const [response] = await exchange(
      store,
      requestText('POST /v1/pets', key + inChunks, body),
    );
    expect(JSON.parse(response?.text ?? '')).toEqual(refusal);
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });

  test('of HTTP/1.0 needs no host; an upgrade to another protocol is ignored', async () => {
    const upgrade = `Host: x\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n${key}`;
    for (const request of [
      `GET /v1/pets HTTP/1.0\r\n${key}\r\n`,
      `GET /v1/pets HTTP/1.1\r\n${upgrade}\r\n`,
    ]) {
      expect(await exchange(store, request)).toMatchObject([
        { status: 200, text: '[]' },
      ]);
    }
  });

  test('to be a proxy (CONNECT) closes the connection', async () => {
    expect(
      await exchange(
        store,
        'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n',
      ),
    ).toEqual([]);
  });
});

describe('a body that breaks off, or comes too late, is refused by its route', () => {
  const origin = 'https://shop.example';
  const listed = nodeForAll(store, { CORS_ORIGINS: origin });
  const late = {
    code: 'REQUEST_TIMEOUT',
    message:
      'The request took too long to arrive: nothing was done. Send it again.',
    status: 408,
  };
  const error = ({ message, ...extensions }: typeof refusal) => ({
    errors: [{ message, extensions }],
  });

  test.each([
    ['/v1/pets', 'HPE_INVALID_CHUNK_SIZE', refusal, refusal],
    ['/graphql', 'HPE_INVALID_CHUNK_SIZE', refusal, error(refusal)],
    ['/v1/pets', 'ERR_HTTP_REQUEST_TIMEOUT', late, late],
    ['/graphql', 'ERR_HTTP_REQUEST_TIMEOUT', late, error(late)],
  ])('%s, %s', async (path, code, { status }, expected) => {
    const { server } = listed.app;
    const connected = once(server, 'connection');
    const origins = `Origin: ${origin}\r\nX-Request-Id: mine-1\r\n`;
    const type =
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n';
    const headers = `Host: a\r\n${key}${origins}${type}`;
    const answers = exchange(listed, `POST ${path} HTTP/1.1\r\n${headers}\r\n`);
    const [socket] = await connected;
    await eventually(
      async () => socket.latestResponse?.req.listenerCount('error') > 0,
    );
    let isOpen: boolean | undefined;
    socket.once('finish', () =>
      setImmediate(() => {
        isOpen = !socket.destroyed;
      }),
    );
    server.emit('clientError', Object.assign(new Error(), { code }), socket);
    const [answer, ...others] = await answers;
    expect(others).toEqual([]);
    // A client that is still sending would not read the answer.
    expect(isOpen).toBe(true);
    expect(answer).toMatchObject({
      status,
      headers: {
        connection: 'close',
        'x-request-id': expect.any(String),
        'access-control-allow-origin': origin,
      },
    });
    expect(JSON.parse(answer?.text ?? '')).toEqual(expected);
  });
});

/** While the key is looked up, no route reads the body. */
test.each([
  ['/v1/pets', refusal],
  [
    '/graphql',
    {
      errors: [
        {
          message: refusal.message,
          extensions: { code: refusal.code, status: refusal.status },
        },
      ],
    },
  ],
])(
  'a chunk that is none, in the packet of the headers, is refused in the form of %s',
  async (path, expected) => {
    const { key } = await store.keys.issue({ name: 'new', scope: 'read' });
    const headers = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const [answer, ...others] = await exchange(
      store,
      requestText(`POST ${path}`, headers, 'z\r\n'),
    );
    expect([answer?.status, JSON.parse(`${answer?.text}`)]).toEqual([
      400,
      expected,
    ]);
    expect(others).toEqual([]);
  },
);

const get = (path: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;

/** The rest of the body must be neither awaited nor taken for a request. */
test.each<
  [status: number, what: string, line: string, authorization?: () => string]
>([
  [401, 'no key', 'POST /v1/pets'],
  [
    401,
    'a wrong key',
    'POST /v1/pets',
    () => 'Authorization: Bearer wrong\r\n',
  ],
  [401, 'no key, for GraphQL', 'POST /graphql'],
  [401, 'no key, with a path that cannot be read', 'POST /v1/pets/%ff'],
  [403, 'a key that may only read', 'POST /v1/pets', () => reader],
  [404, 'an unknown address', 'POST /v1/nothing', () => key],
  [404, 'a path that cannot be read', 'POST /v1/pets/%ff', () => key],
  [405, 'a method that is not allowed', 'PUT /v1/pets', () => key],
  [413, 'a body that is too large', 'POST /v1/pets', () => key],
  [415, 'a body that is no JSON', 'POST /v1/pets', () => key],
])(
  '%i for %s is the only response, and closes the connection',
  async (status, _what, line, authorization) => {
    const type = `Content-Type: ${status === 415 ? 'text/plain' : 'application/json'}\r\n`;
    const first = `${line} HTTP/1.1\r\nHost: a\r\n${authorization?.() ?? ''}${type}`;
    const hidden = get('/livez');
    const bodies = [
      `Content-Length: ${status === 413 ? 9_999_999 : 1000}\r\n\r\n${hidden}`,
    ];
    // The size of a body in chunks is not known in advance.
    if (status !== 413)
      bodies.push(
        'Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n',
        `Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
      );
    for (const body of bodies) {
      expect(await exchange(store, first + body)).toEqual([
        {
          status,
          headers: expect.objectContaining({ connection: 'close' }),
          text: expect.stringContaining(`${status}`),
        },
      ]);
    }
  },
);

test.each([
  ['GET', '/v1/pets'],
  ['OPTIONS', '/v1/pets'],
  ['GET', '/graphql?query={__typename}'],
])(
  '%s %s that succeeds without its body gets one response, too',
  async (method, path) => {
    const first = `${method} ${path} HTTP/1.1\r\nHost: a\r\n${key}Content-Type: application/json\r\n`;
    const responses = await exchange(
      store,
      `${first}Content-Length: 1000\r\n\r\n{`,
      method,
    );
    expect(responses).toMatchObject([
      {
        status: method === 'OPTIONS' ? 204 : 200,
        headers: { connection: 'close' },
      },
    ]);
  },
);

/**
 * The parser finds a fault inside or behind a request when that request is
 * already under way.
 */
test.each<[what: string, bytes: () => string, statuses: number[]]>([
  [
    'an encoding without effect',
    () => get('/livez', 'Transfer-Encoding: identity\r\n'),
    [400],
  ],
  [
    'an encoding without effect, in a request that is refused at once',
    () =>
      `GET /v1/pets HTTP/1.1\r\nHost: a b\r\n${key}Transfer-Encoding: identity\r\n\r\n`,
    [400],
  ],
  [
    'a chunk that is none, without a key',
    () => `${get('/v1/pets', 'Transfer-Encoding: chunked\r\n')}z\r\n`,
    [401],
  ],
  ['garbage behind a creation', () => `${creation()}\0\r\n\r\n`, [201, 400]],
  [
    'garbage behind two creations',
    () => `${creation()}${creation()}\0\r\n\r\n`,
    [201, 201, 400],
  ],
  [
    'a request behind another, with no key of its own',
    () => `${creation()}GET /v1/pets HTTP/1.1\r\n${closing}\r\n`,
    [201, 401],
  ],
  // A refusal that leaves no byte unread keeps the connection open.
  [
    'each of three refusals',
    () =>
      `${get('/v1/pets')}${get('/v1/pets/%ff')}GET /v1/nothing HTTP/1.1\r\n${closing}\r\n`,
    [401, 401, 401],
  ],
])(
  '%s gets one response, after those of the requests before it',
  async (_what, bytes, statuses) => {
    // From here on the key is known, so a refusal without the database is
    // immediate.
    await exchange(store, get('/v1/pets', `${key}Connection: close\r\n`));
    expect(
      (await exchange(store, bytes())).map(({ status }) => status),
    ).toEqual(statuses);
  },
);
