import fc from 'fast-check';
import { toJson } from '../../support/http.ts';

const numbers = fc.constantFrom(
  ...'0 -0 1 -1 1.0 1.5 1e3 0.1e1 1e400 -1e400 1e-400 1e99999 9007199254740993 9223372036854775807'.split(
    ' ',
  ),
  ...'-9223372036854775808 9223372036854775808 123456789012345678901234567890 NaN 01 +1'.split(
    ' ',
  ),
);
const fragments = fc.constantFrom(
  ...'{ } [ ] " , : \\ \\u0000 \\ud800 \u0000 \ufeff null true {} [] "" /* // \u2028'.split(
    ' ',
  ),
  ...'"__proto__":{"a":1}, "constructor":{"prototype":{}}, "id":1, "status":"sold",'.split(
    ' ',
  ),
  ' ',
  '\n',
);

const cut = fc.record({
  at: fc.nat(400),
  length: fc.nat(20),
  put: fc.oneof(numbers, fragments, fc.string()),
});

/** The text with pieces replaced by others. */
export function mutated(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(text, fc.array(cut, { minLength: 1, maxLength: 3 }))
    .map(([whole, cuts]) =>
      cuts.reduce((now, { at, length, put }) => {
        const place = at % (now.length + 1);
        return now.slice(0, place) + put + now.slice(place + length);
      }, whole),
    );
}

/** Any JSON value; the numbers keep their digits. */
export const anyJson = fc.oneof(
  { weight: 3, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 2, arbitrary: numbers },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(1, 100, 5000, 40_000)
      .map((depth) => '['.repeat(depth)),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(1, 100, 5000)
      .map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`),
  },
);

const anything = fc.jsonValue({ maxDepth: 1 });
const members = fc.record(
  {
    name: fc.oneof(
      { weight: 6, arbitrary: fc.string({ unit: 'binary' }) },
      anything,
    ),
    categoryId: fc.oneof(
      {
        weight: 6,
        arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }),
      },
      anything,
    ),
    status: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('available', 'pending', 'sold') },
      anything,
    ),
    constructor: fc.constant(1),
  },
  { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
);

/** NewPet as JSON, its members valid or not. */
export const newPetJson = members.map(toJson);

/** Any value; most are known to be difficult. */
export const value = fc.oneof(
  fc.constantFrom<unknown[]>(
    ...[1, 20, 101, 9007199254740993n, 2n ** 63n],
    null,
    true,
  ),
  fc.constantFrom('1', 'sold', 'lost', '\ud800', 'a\u0000'),
  fc.jsonValue({ maxDepth: 2 }),
);
const mostly = (usual: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 15, arbitrary: usual }, value);
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const id = mostly(fc.oneof(int64, int64.map(String)));
const status = mostly(fc.constantFrom('available', 'pending', 'sold'));
const input = mostly(
  fc.record(
    { name: mostly(fc.string({ unit: 'binary' })), categoryId: id, status },
    { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
  ),
);
const int = mostly(fc.integer({ min: 1, max: 100 }));
const text = mostly(fc.oneof(fc.string(), int64.map(String)));
const [yes, no] = [mostly(fc.boolean()), mostly(fc.constant(undefined))];
/** Values named after their types, as `documents` declares its variables. */
export const variables = fc.record(
  {
    ...{
      vInt: int,
      vID: id,
      vIDx: id,
      vString: text,
      vStringx: text,
      vBooleanx: yes,
    },
    ...{ vPetStatus: status, vPetStatusx: status, vNewPetx: input, more: no },
  },
  { noNullPrototype: true },
);

export const headerText = fc.string({
  unit: fc
    .oneof(
      fc.integer({ min: 0x20, max: 0x7e }),
      fc.integer({ min: 0x80, max: 0xff }),
    )
    .map((code) => String.fromCharCode(code)),
});
const oneOf = (...values: string[]) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...values) },
    { weight: 1, arbitrary: headerText },
  );
const headers = fc.record(
  {
    accept: oneOf(
      '*/*',
      'text/html',
      'application/xml',
      'application/json;q=0',
      '',
    ),
    'accept-encoding': oneOf('gzip', 'br', 'identity;q=0', '*;q=0'),
    'content-type': oneOf(
      'application/json; charset=utf-16',
      'text/plain',
      'multipart/form-data',
      ';',
    ),
    'content-encoding': oneOf('gzip', 'identity', 'br'),
    'transfer-encoding': oneOf('chunked', 'gzip, chunked', 'identity'),
    expect: oneOf('100-continue', '200-ok'),
    host: oneOf('example.com', 'a b', '[::1]:80', 'x:99999', '>;rel=next', ''),
    origin: oneOf('https://shop.example', 'null'),
    'access-control-request-method': oneOf('POST', 'DELETE'),
    forwarded: oneOf('for=1.2.3.4;host=evil.example;proto=https', 'for="'),
    'x-forwarded-host': oneOf('evil.example', 'a,b'),
    'x-forwarded-proto': oneOf('https', 'javascript'),
    'x-request-id': oneOf('abc', 'a'.repeat(65)),
    'x-http-method-override': oneOf('DELETE'),
    range: oneOf('bytes=0-1', 'bytes=9-1'),
    'if-none-match': oneOf('*', '"a"'),
    'if-modified-since': oneOf('Thu, 05 Dec 2030 00:00:00 GMT'),
    connection: oneOf('close', 'keep-alive', 'upgrade'),
    upgrade: oneOf('websocket', 'h2c'),
    te: oneOf('trailers'),
    cookie: oneOf('a=b'),
  },
  { requiredKeys: [] },
);
// A few at a time: with all at once the first would always be refused.
const pickedHeaders = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  fc.array(fc.nat(20), { maxLength: 3 }),
);
/** No header, or a few that are known to be difficult for servers. */
export const someHeaders = fc
  .tuple(headers, pickedHeaders)
  .map(([all, picked]) => {
    const entries = Object.entries(all);
    return Object.fromEntries(
      picked.flatMap((index) => (entries[index] ? [entries[index]] : [])),
    );
  });
