import type { IncomingMessage } from 'node:http';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type RestResponse, rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/**
 * The edge table of bodies as text that JSON.parse alone would lose, alter or
 * fail on.
 */

const store = storeForAll();
beforeEach(() => store.empty());

const post = (body: string | Buffer): Promise<RestResponse> =>
  rest(store, '/v1/pets', { method: 'POST', body });
const refused = (message: string) => ({
  code: 'BAD_USER_INPUT',
  status: 400,
  message,
});
const int64Rule =
  'categoryId must be an integer between -9223372036854775808 and 9223372036854775807.';
const id = expect.any(Number);
const around = (bytes: number[]) =>
  Buffer.concat([
    Buffer.from('{"name":"'),
    Buffer.from(bytes),
    Buffer.from('"}'),
  ]);
const rex = '{"name":"Rex","categoryId":1}';

/**
 * packages/exact-json has the table of numbers; here is how the service reads
 * one of each kind.
 */
describe('a category as JSON text', () => {
  test.each([
    ['-0', '0'],
    ['-1.00', '-1'],
    ['1000e-3', '1'],
    ['-9223372036854775808.000', '-9223372036854775808'],
    ['0.0009223372036854775807e22', '9223372036854775807'],
    [`1${'0'.repeat(500)}e-500`, '1'],
  ])('%s is the whole number %s', async (text, digits) => {
    const { status, text: body } = await post(
      `{"name":"Rex","categoryId":${text}}`,
    );
    expect([status, /"categoryId":(.+?),/.exec(body)?.[1]]).toEqual([
      201,
      digits,
    ]);
    expect((await rest(store, '/v1/pets')).text).toBe(`[${body}]`);
  });

  test.each([
    ...[
      '9.223372036854775808e18',
      '1e999999999',
      `0.${'0'.repeat(400)}1`,
      '5.5',
    ].map((text) => [text, int64Rule]),
    ['"5"', `${int64Rule.slice(0, -1)}, not a string.`],
    ['null', `${int64Rule.slice(0, -1)}, not null.`],
  ])('%s is refused', async (text, message) => {
    expect((await post(`{"name":"Rex","categoryId":${text}}`)).json).toEqual(
      refused(message),
    );
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

describe('a body', () => {
  test.each([
    ['between white space', ` \n\t\r${rex}\r\n`, 'Rex', 1],
    ['after a byte order mark', `\ufeff${rex}`, 'Rex', 1],
    [
      'with duplicate members: the last',
      '{"name":5,"name":"Rex","categoryId":"x","categoryId":2}',
      'Rex',
      2,
    ],
    [
      'with escaped member names',
      '{"\\u006eame":"Rex","categoryId":1}',
      'Rex',
      1,
    ],
    [
      'with a surrogate pair',
      '{"name":"\\ud83d\\udc15","categoryId":1}',
      '🐕',
      1,
    ],
    [
      'with other members',
      '{"name":"Rex","categoryId":1,"id":-5,"x":[{"y":1e400}]}',
      'Rex',
      1,
    ],
    [
      'nested deeply',
      `{"name":"Rex","categoryId":1,"x":${'['.repeat(19_000)}${']'.repeat(19_000)}}`,
      'Rex',
      1,
    ],
  ])('%s is accepted', async (_what, body, name, categoryId) => {
    expect((await post(body)).json).toEqual({
      id,
      name,
      categoryId,
      status: 'available',
    });
  });

  const inexact = ['1e400', '0.1234567890123456789'];
  test.each(['null', `[${rex}]`, '"Rex"', '9007199254740993', ...inexact, ''])(
    'that is %s is refused',
    async (body) => {
      expect((await post(body)).json).toEqual(
        refused('The body must be a JSON object.'),
      );
    },
  );

  test.each([
    ['white space', '  ', 'Unexpected end of JSON input'],
    ['truncated', '{"name":"Rex"', /^Expected ',' or '}' after property value/],
    [
      'with a raw line break in a string',
      '{"name":"a\nb"}',
      /^Bad control character/,
    ],
    ['after two byte order marks', `\ufeff\ufeff${rex}`, /^Unexpected token/],
    [
      'in UTF-16 with its mark',
      Buffer.from(`\ufeff${rex}`, 'utf16le'),
      'it is not valid UTF-8',
    ],
    ['with an overlong U+0000', around([0xc0, 0x80]), 'it is not valid UTF-8'],
    [
      'with a surrogate in UTF-8',
      around([0xed, 0xa0, 0x80]),
      'it is not valid UTF-8',
    ],
    ['with a cut character', around([0xe2, 0x82]), 'it is not valid UTF-8'],
    [
      'with more values than its numbers allow',
      `{"a":1e3,"x":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      'with an exponent or 16 digits in a row it may have at most 5000 values',
    ],
    [
      'nested 400,000 times',
      `{"x":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
      'it may have at most 20000 values',
    ],
  ])('that is %s is refused', async (_what, body, reason) => {
    const { json } = await post(body);
    expect(json).toEqual(
      refused(
        expect.stringMatching(
          /^The body is not acceptable JSON: .+[^.]\.$/,
        ) as never,
      ),
    );
    const given = json.message.slice(
      'The body is not acceptable JSON: '.length,
      -1,
    );
    expect(given).toEqual(
      typeof reason === 'string' ? reason : expect.stringMatching(reason),
    );
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

test.each<[string, (poison: string) => string]>([
  ['at the top', (poison) => poison],
  ['beside a number with an exponent', (poison) => `"x":1e3,${poison}`],
  [
    '1000 arrays deep',
    (poison) => `"x":${'['.repeat(1000)}{${poison}}${']'.repeat(1000)}`,
  ],
  [
    'beside a long number, deep inside',
    (poison) => `"y":12345678901234567890,"x":[[{"z":[{${poison}}]}]]`,
  ],
])(
  'a member that would pollute every prototype is ignored like other unknown ones, %s',
  async (_where, at) => {
    for (const poison of [
      '"__proto__":{"polluted":1}',
      '"\\u005f\\u005fproto\\u005f_":{"polluted":1}',
      '"__proto__":[{"__proto__":{"polluted":1}}]',
      '"constructor":{"prototype":{"polluted":1}}',
      '"constructor":{"__proto__":{"prototype":{"polluted":1}}}',
    ]) {
      const { status, json } = await post(
        `{"name":"Rex","categoryId":1,${at(poison)}}`,
      );
      expect({ status, json }).toEqual({
        status: 201,
        json: { id, name: 'Rex', categoryId: 1, status: 'available' },
      });
      const query = 'query ($id: ID!) { pet(id: $id) { name } }';
      const request = `{"query":${JSON.stringify(query)},"variables":{"id":${json.id},${at(poison)}},${at(poison)}}`;
      const response = await graphqlText(store, request);
      expect([response.status, response.data]).toEqual([
        200,
        { pet: { name: 'Rex' } },
      ]);
    }
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  },
);

test('the members inside __proto__ are no members of the animal', async () => {
  const { json } = await post('{"__proto__":{"name":"Rex","categoryId":1}}');
  expect(json).toEqual(refused('name is required; categoryId is required.'));
});

test('large bodies one after the other do not use up the memory for them', async () => {
  // The memory is that of 64 such bodies.
  await onNode(store, { BODY_LIMIT_BYTES: '70000' }, async (node) => {
    for (let time = 1; time <= 65; time += 1) {
      const { status } = await rest(node, '/v1/pets', {
        method: 'POST',
        body: rex.padEnd(70_000),
      });
      expect([time, status]).toEqual([time, 201]);
    }
  });
});

test.each([
  { size: 1, count: 1001, status: 400 },
  { size: 15, count: 1001, status: 400 },
  { size: 1, count: 1000, status: 201 },
  { size: 16, count: 1001, status: 201 },
])('$count chunks of $size bytes: $status', async ({ size, count, status }) => {
  const padded = Buffer.from(rex.padEnd(size * count));
  const chunks = Array.from({ length: count }, (_, at) => {
    const bytes = padded.subarray(at * size, (at + 1) * size);
    return `${size.toString(16)}\r\n${bytes}\r\n`;
  });
  const headers = `Authorization: Bearer ${store.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
  const body = `${chunks.join('')}0\r\n\r\n`;
  const [response] = await exchange(
    store,
    requestText('POST /v1/pets', headers, body),
  );
  expect(response?.status).toBe(status);
  if (status === 400) expect(response?.text).toContain('too many chunks');
});

test.each([
  ['POST', '/v1/pets', true, 400],
  ['POST', '/graphql', true, 400],
  ['POST', '/v1/pets', false, 401],
  ['GET', '/v1/pets', true, 200],
  ['POST', '/none', true, 404],
])(
  'of many tiny chunks Node keeps few, %s %s',
  async (method, path, hasKey, status) => {
    let kept = 0;
    const { server } = store.app;
    server.prependOnceListener('request', (raw: IncomingMessage) => {
      const { push } = raw;
      raw.push = (chunk) => {
        kept += 1;
        return push.call(raw, chunk);
      };
    });
    const key = hasKey ? `Authorization: Bearer ${store.key}\r\n` : '';
    const headers = `${key}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const chunks = '1\r\n \r\n'.repeat(30_000);
    const request = requestText(`${method} ${path}`, headers, chunks);
    const [response] = await exchange(store, request);
    expect(response?.status).toBe(status);
    expect(kept).toBeLessThanOrEqual(1001);
  },
);

test('201 has no Location', async () => {
  const created = await post(rex);
  expect(created.status).toBe(201);
  expect(created.headers).not.toHaveProperty('location');
});
