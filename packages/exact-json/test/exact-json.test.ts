import { inspect } from 'node:util';
import {
  exact,
  exactInteger,
  isRecord,
  nearestDouble,
  parseExactJson,
  parseStoredJson,
} from '@animal-store/exact-json';
import { expect, test } from '@jest/globals';

const parse = (text: string) => parseExactJson(Buffer.from(text));

test.each<[text: string, value: unknown]>([
  ['9007199254740991', 9007199254740991],
  ['9007199254740993', 9007199254740993n],
  ['-9223372036854775808', -9223372036854775808n],
  ['9007199254740993.000', 9007199254740993n],
  ['900719925474099300e-2', 9007199254740993n],
  ['9.223372036854775807e18', 9223372036854775807n],
  ['123456789012345678901234567890', 123456789012345678901234567890n],
  ['-0', -0],
  ['0e999', 0],
  ['1e3', 1000],
  ['1e18', 1000000000000000000n],
  ['-1.5e20', -150000000000000000000n],
  ['92233720368547758070e-1', 9223372036854775807n],
  ['1.5', 1.5],
  ['\u{feff}[1]', [1]],
])('%s is parsed exactly', (text, value) => {
  expect(parse(text)).toStrictEqual(value);
});

test.each([
  ...['1.00000000000000001', '9007199254740992.5', '1e400', '-1e400'],
  ...['1e-400', '-1e-400', '4.9e-324', '0.1234567890123456789'],
  ...['123456.78901234567890', '-1.5000000000000000001e-7'],
])(
  '%s, which a double would change, is no JSON object and is written unchanged',
  (text) => {
    const value = parse(text);
    expect(typeof value).toBe('object');
    expect(inspect(value)).toBe(text);
    expect(isRecord(value)).toBe(false);
    expect(Object.keys(value as object)).toEqual([]);
    expect(JSON.stringify({ value }, exact)).toBe(`{"value":${text}}`);
  },
);

test.each([
  ['0.30000000000000004', 0.30000000000000004],
  ['5e-324', 5e-324],
  ['1.50000000000000000', 1.5],
  ['0.000000123e1', 0.00000123],
  ['-0.0e0', 0],
])('%s is the same as a double', (text, value) => {
  expect(parse(`[${text}]`)).toEqual([value]);
});

test.each([
  ['0.1234567890123456789', 0.12345678901234568],
  ['1e-400', undefined],
  ['0.99999999999999999999', undefined],
])('the nearest double of %s is %s', (text, nearest) => {
  const value = parse(text);
  expect(nearestDouble(value)).toBe(nearest ?? value);
});

test('stored numbers are written with all their digits', () => {
  const text = `[0.1234567890123456789,1${'0'.repeat(400)},0.${'0'.repeat(399)}1,9007199254740993.5,{"a":-0.10000000000000000001},0.30000000000000004]`;
  expect(JSON.stringify(parseStoredJson(text))).toBe(text);
});

test('a text may have 20,000 values, and 5,000 when it needs the slow way', () => {
  const list = (value: string, count: number) =>
    `[${Array(count).fill(value)}]`;
  expect(parse(list('1e1', 4998))).toEqual(Array(4998).fill(10));
  expect(parse(list('101', 19_999))).toHaveLength(19_999);
  for (const text of [
    list('101', 20_000),
    `{"a":${list('{"b":1}', 10_000)}}`,
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    `["\\\\",${list('""', 20_000)}]`,
    '['.repeat(1_000_000),
  ])
    expect(() => parse(text)).toThrow(/^it may have at most 20000 values$/);
  for (const text of [
    list('1e1', 5000),
    `[1e1,${list('[]', 5000)}]`,
    `${'['.repeat(5000)}1e1${']'.repeat(5000)}`,
  ]) {
    expect(() => parse(text)).toThrow(
      /^with an exponent or 16 digits in a row it may have at most 5000 values$/,
    );
  }
});

test.each(['[{,', '\\"[', '\\\\\\"{', '\\\\'])(
  'what is in a string is no value: %s',
  (part) => {
    const text = `["${part.repeat(30_000)}",1]`;
    expect(parse(text)).toEqual(JSON.parse(text));
  },
);

test('integers are written without an exponent', () => {
  expect(JSON.stringify([9007199254740993n, 1e21, -0, 1.5], exact)).toBe(
    '[9007199254740993,1000000000000000000000,0,1.5]',
  );
});

test('as a reviver it keeps every digit of an integer, and no other number', () => {
  const read = JSON.parse(
    '[9007199254740993,-9007199254740993,1,1e21,1.5]',
    exactInteger as never,
  );
  expect(read).toEqual([9007199254740993n, -9007199254740993n, 1, 1e21, 1.5]);
});

test.each(['', ',"n":9007199254740993'])(
  'members of any name are own members%s',
  (more) => {
    const text = `{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}},"b":2${more}}`;
    const read = parse(text) as object;
    expect(Object.keys(read).slice(0, 3)).toEqual([
      '__proto__',
      'constructor',
      'b',
    ]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(({} as { a?: number }).a).toBeUndefined();
  },
);

test.each<[bytes: Buffer, reason: RegExp]>([
  [Buffer.from('{"a":'), /^Unexpected end of JSON input$/],
  [Buffer.from([0x22, 0xff, 0x22]), /^it is not valid UTF-8$/],
  [Buffer.from('[1,]'), /^Unexpected token .*[^.]$/],
])('%s is refused with a reason', (bytes, reason) => {
  expect(() => parseExactJson(bytes)).toThrow(reason);
});
