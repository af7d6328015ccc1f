import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { type RestResponse, rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of bodies as text: what JSON.parse alone would lose, alter or choke on. */

const store = storeForAll();
beforeEach(() => store.empty());

const post = (body: string | Buffer): Promise<RestResponse> => rest(store, '/v1/pets', { method: 'POST', body });
const refused = (message: string) => ({ code: 'BAD_USER_INPUT', status: 400, message });
const int64Rule = 'categoryId must be an integer between -9223372036854775808 and 9223372036854775807.';
const id = expect.any(Number);
const around = (bytes: number[]) => Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]);
const rex = '{"name":"Rex","categoryId":1}';

describe('a category as JSON text', () => {
  test.each([
    ['-0', '0'],
    ['1.0', '1'],
    ['-1.00', '-1'],
    ['1e3', '1000'],
    ['1E+3', '1000'],
    ['0.1e1', '1'],
    ['1000e-3', '1'],
    ['0e999999999', '0'],
    ['9007199254740993', '9007199254740993'],
    ['9007199254740993.0', '9007199254740993'],
    ['-9223372036854775808.000', '-9223372036854775808'],
    ['1e18', '1000000000000000000'],
    ['-9.223372036854775808E18', '-9223372036854775808'],
    ['9.223372036854775807e18', '9223372036854775807'],
    ['0.0009223372036854775807e22', '9223372036854775807'],
    ['10000000000000000000000e-4', '1000000000000000000'],
    [`1${'0'.repeat(500)}e-500`, '1'],
  ])('%s is the whole number %s', async (text, digits) => {
    const { status, text: body } = await post(`{"name":"Rex","categoryId":${text}}`);
    expect([status, /"categoryId":(.+?),/.exec(body)?.[1]]).toEqual([201, digits]);
    expect((await rest(store, '/v1/pets')).text).toBe(`[${body}]`);
  });

  test.each([
    '1.5',
    '1e-3',
    '12345678.000000000000001',
    '1.0000000000000001',
    '0.99999999999999999999',
    '1.00000000000000000001',
    '4503599627370496.5',
    '9007199254740993.5',
    '9223372036854775807.5',
    '9223372036854775808',
    '-9223372036854775809',
    '9.223372036854775808e18',
    '1e19',
    '1e400',
    '-1e400',
    '1e999999999',
    '1e-999999999',
    `0.${'0'.repeat(400)}1`,
    '"5"',
    'true',
    'null',
  ])('%s is refused', async (text) => {
    expect((await post(`{"name":"Rex","categoryId":${text}}`)).json).toEqual(refused(int64Rule));
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

describe('a body', () => {
  test.each([
    ['between white space', ` \n\t\r${rex}\r\n`, 'Rex', 1],
    ['after a byte order mark', `\ufeff${rex}`, 'Rex', 1],
    [
      'with duplicate members, of which the last counts',
      '{"name":5,"name":"Rex","categoryId":"x","categoryId":2}',
      'Rex',
      2,
    ],
    ['with escaped member names', '{"\\u006eame":"Rex","categoryId":1}', 'Rex', 1],
    ['with a surrogate pair', '{"name":"\\ud83d\\udc15","categoryId":1}', '🐕', 1],
    ['with other members', '{"name":"Rex","categoryId":1,"id":-5,"x":[{"y":1e400}]}', 'Rex', 1],
    ['with a member named constructor', '{"name":"Rex","categoryId":1,"constructor":{"a":1}}', 'Rex', 1],
    // members that could poison prototypes are unknown members like any other.
    ['with __proto__', `${rex.slice(0, -1)},"__proto__":{"a":1}}`, 'Rex', 1],
    [
      'with __proto__ that holds other values',
      `${rex.slice(0, -1)},"__proto__":{"name":"x","status":"sold"}}`,
      'Rex',
      1,
    ],
    ['with __proto__ null', `${rex.slice(0, -1)},"__proto__":null}`, 'Rex', 1],
    ['with an escaped __proto__', `${rex.slice(0, -1)},"\\u005f_proto__":{}}`, 'Rex', 1],
    ['with __proto__ inside', `${rex.slice(0, -1)},"x":[{"__proto__":{}}]}`, 'Rex', 1],
    ['with __proto__ beside a number with an exponent', `${rex.slice(0, -1)},"x":1e3,"__proto__":{}}`, 'Rex', 1],
    ['with constructor.prototype', `${rex.slice(0, -1)},"constructor":{"prototype":{}}}`, 'Rex', 1],
    ['nested deeply', `{"name":"Rex","categoryId":1,"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'Rex', 1],
  ])('%s is accepted', async (_what, body, name, categoryId) => {
    expect((await post(body)).json).toEqual({ id, name, categoryId, status: 'available' });
  });

  test.each([
    ['null', 'null'],
    ['an array', `[${rex}]`],
    ['a string', '"Rex"'],
    ['a number', '9007199254740993'],
    ['a boolean', 'true'],
    ['empty', ''],
  ])('that is %s is refused', async (_what, body) => {
    expect((await post(body)).json).toEqual(refused('The body must be a JSON object.'));
  });

  test.each([
    ['white space', '  ', 'Unexpected end of JSON input'],
    ['truncated', '{"name":"Rex"', /^Expected ',' or '}' after property value/],
    ['with a trailing comma', `${rex.slice(0, -1)},}`, /^Expected double-quoted property name/],
    ['two', rex + rex, /^Unexpected non-whitespace character after JSON/],
    ['with a comment', `/**/${rex}`, /^Unexpected token '\/'/],
    ['in single quotes', "{'name':'Rex'}", /^Expected property name/],
    ['with NaN', '{"categoryId":NaN}', /^Unexpected token 'N'/],
    ['with a hexadecimal number', '{"categoryId":0x1}', /^Expected ',' or '}'/],
    ['with a leading zero', '{"categoryId":01}', /^Unexpected number/],
    ['with a leading plus', '{"categoryId":+1}', /^Unexpected token '\+'/],
    ['with a raw line break in a string', '{"name":"a\nb"}', /^Bad control character/],
    ['with a raw U+0000', '{"name":"a\u0000b"}', /^Bad control character/],
    ['after two byte order marks', `\ufeff\ufeff${rex}`, /^Unexpected token/],
    ['with a byte order mark inside', `{\ufeff${rex.slice(1)}`, /^Expected property name/],
    ['in UTF-16', Buffer.from(rex, 'utf16le'), /^Expected property name/],
    ['in UTF-16 with its mark', Buffer.from(`\ufeff${rex}`, 'utf16le'), 'it is not valid UTF-8'],
    ['in Latin-1', around([0xe9]), 'it is not valid UTF-8'],
    ['with an overlong U+0000', around([0xc0, 0x80]), 'it is not valid UTF-8'],
    ['with a surrogate in UTF-8', around([0xed, 0xa0, 0x80]), 'it is not valid UTF-8'],
    ['beyond U+10FFFF', around([0xf4, 0x90, 0x80, 0x80]), 'it is not valid UTF-8'],
    ['with a cut character', around([0xe2, 0x82]), 'it is not valid UTF-8'],
    [
      'nested too deeply for its numbers',
      `{"a":1e3,"x":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
      'it is nested too deeply',
    ],
  ])('that is %s is refused', async (_what, body, reason) => {
    const { json } = await post(body);
    expect(json).toEqual(refused(expect.stringMatching(/^The body is not acceptable JSON: .+[^.]\.$/) as never));
    const told = json.message.slice('The body is not acceptable JSON: '.length, -1);
    expect(told).toEqual(typeof reason === 'string' ? reason : expect.stringMatching(reason));
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});
