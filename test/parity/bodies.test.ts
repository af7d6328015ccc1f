import { faces } from '../support/faces.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of a new animal's values. What GraphQL's own types refuse first, they refuse in their own words. */

const store = storeForAll();
beforeEach(() => store.empty());

const int64Rule = 'categoryId must be an integer between -9223372036854775808 and 9223372036854775807.';
const nameRule = 'name must be free of U+0000 and of lone surrogates.';
const statusRule = 'status must be one of available, pending, sold.';
const refused = (message: unknown) => ({ code: 'BAD_USER_INPUT', status: 400, message });
const id = expect.stringMatching(/^[1-9]\d*$/);

describe.each(faces)('through $name', (face) => {
  test.each([
    0n,
    -1n,
    2147483648n,
    9007199254740991n,
    9007199254740992n,
    9007199254740993n,
    -9007199254740993n,
    1000000000000000000n,
    9223372036854775807n,
    -9223372036854775808n,
  ])('the category %s is kept to the last digit', async (categoryId) => {
    const outcome = await face.create(store, { name: 'Rex', categoryId });
    expect(outcome).toEqual({ data: { id, name: 'Rex', categoryId: `${categoryId}`, status: 'available' } });
    const { data } = outcome as { data: { id: string } };
    for (const other of faces) expect(await other.find(store, data.id)).toEqual({ data });
  });

  test.each([9223372036854775808n, -9223372036854775809n, 10n ** 30n, 10n ** 60n])(
    'the category %s is refused',
    async (categoryId) => {
      expect(await face.create(store, { name: 'Rex', categoryId })).toEqual(refused(int64Rule));
      expect(await face.list(store, {})).toEqual({ data: [] });
    },
  );

  test.each([1.5, -0.1, 1e-7, true, false, null, [], [1], {}])(
    'the category %j is refused by type',
    async (categoryId) => {
      const message = face.name === 'REST' ? int64Rule : expect.any(String);
      expect(await face.create(store, { name: 'Rex', categoryId })).toEqual(refused(message));
      expect(await face.list(store, {})).toEqual({ data: [] });
    },
  );

  test('decimal digits in a string are a category in GraphQL, whose ids are strings, and not in REST', async () => {
    for (const digits of ['5', '9223372036854775807', '-1']) {
      const pet = { id, name: 'Rex', categoryId: digits, status: 'available' };
      const expected = face.name === 'REST' ? refused(int64Rule) : { data: pet };
      expect(await face.create(store, { name: 'Rex', categoryId: digits })).toEqual(expected);
    }
  });

  test.each([
    '',
    'x',
    '05',
    '+5',
    '5.0',
    '1e3',
    ' 5',
    '0x5',
    '-0',
    '9223372036854775808',
    '٥',
    "1'; drop table pet; --",
  ])('the category "%s" is refused by both', async (categoryId) => {
    expect(await face.create(store, { name: 'Rex', categoryId })).toEqual(refused(int64Rule));
  });

  test.each([
    ['empty', ''],
    ['blank', '  \t\r\n '],
    ['as long as it may be', 'é🐕'.repeat(500)],
    ['emoji', '🐕‍🦺👩🏽‍🚒🏳️‍🌈'],
    ['combining, composed', 'é'],
    ['combining, decomposed', 'e\u0301'],
    ['right-to-left', 'كلب \u202eabc\u202c שלום'],
    ['control characters', '\u0001\u0008\u001f\u007f\u0085\u2028\u2029'],
    ['byte order mark', '\ufeffRex\ufeff'],
    ['noncharacters', '\uffff\ufffe\u{10ffff}'],
    ['replacement character', '\ufffd'],
    ['SQL', "Robert'); drop table pet; -- $1 %s \\"],
    ['SQL between dollars', "$$; drop table pet; $$ E'\\x27' {{7*7}} %27"],
    ['HTML', '<img src=x onerror="alert(1)">&amp;\u003c/script>'],
    ['JSON', '{"name":"x"}\\u0000\\"'],
    ['a number', '9007199254740993'],
    ['array literal of PostgreSQL', '{NULL,"a",\\,}'],
    ['null', 'null'],
    ['prototype', '__proto__'],
  ])('a name is kept exactly: %s', async (_what, name) => {
    const outcome = await face.create(store, { name, categoryId: 1 });
    expect(outcome).toEqual({ data: { id, name, categoryId: '1', status: 'available' } });
    for (const other of faces)
      expect(await other.list(store, {})).toEqual({ data: [(outcome as { data: unknown }).data] });
  });

  test.each(['\u0000', 'a\u0000b', '\ud800', '\udc00', 'a\udc00\ud800b', '🐕\ud83d'])(
    'the name %j is refused',
    async (name) => {
      expect(await face.create(store, { name, categoryId: 1 })).toEqual(refused(nameRule));
      expect(await face.list(store, {})).toEqual({ data: [] });
    },
  );

  test.each([null, 5, 9007199254740993n, true, ['Rex'], { a: 1 }])('the name %p is refused by type', async (name) => {
    const message = face.name === 'REST' ? 'name must be a string.' : expect.any(String);
    expect(await face.create(store, { name, categoryId: 1 })).toEqual(refused(message));
  });

  test.each([[undefined, 'available'], ['available'], ['pending'], ['sold']])(
    'the status %s is kept',
    async (status, kept = status) => {
      const pet = { id, name: 'Rex', categoryId: '1', status: kept };
      expect(await face.create(store, { name: 'Rex', categoryId: 1, status })).toEqual({ data: pet });
    },
  );

  test.each([null, '', 'Sold', "sold'::text", ' sold', 'unknown', 'toString', '__proto__', 1, true, ['sold'], {}])(
    'the status %j is refused',
    async (status) => {
      const message = face.name === 'REST' ? statusRule : expect.any(String);
      expect(await face.create(store, { name: 'Rex', categoryId: 1, status })).toEqual(refused(message));
    },
  );

  test.each([
    [{}, 'name is required; categoryId is required.'],
    [{ name: 'Rex' }, 'categoryId is required.'],
    [{ categoryId: 1 }, 'name is required.'],
    [{ Name: 'Rex', category_id: 1 }, 'name is required; categoryId is required.'],
    [{ name: null, categoryId: 'x', status: 'y' }, `name must be a string; ${int64Rule.slice(0, -1)}; ${statusRule}`],
    [null, 'The body must be a JSON object.'],
    [[], 'The body must be a JSON object.'],
    [[{ name: 'Rex', categoryId: 1 }], 'The body must be a JSON object.'],
    ['Rex', 'The body must be a JSON object.'],
    [5, 'The body must be a JSON object.'],
    [true, 'The body must be a JSON object.'],
  ])('the animal %j is refused: %s', async (newPet, message) => {
    expect(await face.create(store, newPet)).toEqual(refused(face.name === 'REST' ? message : expect.any(String)));
    expect(await face.list(store, {})).toEqual({ data: [] });
  });

  test('every fault that the service finds is named, on both faces in the same words', async () => {
    const outcome = await face.create(store, { name: '\u0000', categoryId: 2n ** 63n });
    expect(outcome).toEqual(refused(`${nameRule.slice(0, -1)}; ${int64Rule}`));
  });

  test('unknown members are ignored by REST; GraphQL knows its inputs', async () => {
    const outcome = await face.create(store, {
      id: 99,
      name: 'Rex',
      categoryId: 1,
      constructor: 1,
      tags: [{ a: null }],
    });
    const pet = { id: expect.not.stringMatching(/^99$/), name: 'Rex', categoryId: '1', status: 'available' };
    expect(outcome).toEqual(face.name === 'REST' ? { data: pet } : refused(expect.any(String)));
  });
});
