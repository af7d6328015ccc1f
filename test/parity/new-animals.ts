import { apis } from '../support/apis.ts';
import { stockNames } from '../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { type StartStoreOptions, storeForAll } from '../support/store.ts';

/**
 * The edge table of a new animal's values. A value that GraphQL's types refuse
 * gets a message of those types.
 */
export function newAnimals(options?: StartStoreOptions) {
  const store = storeForAll({}, undefined, options);
  beforeEach(() => store.empty());

  const int64Rule =
    'categoryId must be an integer between -9223372036854775808 and 9223372036854775807.';
  const nameRule = 'name must be free of U+0000 and of lone surrogates.';
  const lengthRule = 'name must be at most 1000 characters long.';
  const statusRule = 'status must be one of available, pending, sold.';
  const noObject = 'The body must be a JSON object.';
  const refused = (message: unknown) => ({
    code: 'BAD_USER_INPUT',
    status: 400,
    message,
  });
  const id = expect.stringMatching(/^[1-9]\d*$/);

  describe.each(apis)('through $name', (api) => {
    test.each([
      ['empty', ''],
      ['blank', '  \t\r\n '],
      // A character is a Unicode code point: an emoji is one, and so is a
      // combining accent.
      ['of maximum length', 'é🐕'.repeat(500)],
      ['emoji', '🐕‍🦺👩🏽‍🚒🏳️‍🌈'],
      ['combining, composed', 'é'],
      ['combining, decomposed', 'e\u0301'],
      ['right-to-left', 'كلب \u202eabc\u202c שלום'],
      ['control characters', '\u0001\u0008\u001f\u007f\u0085\u2028\u2029'],
      ['byte order mark', '\ufeffRex\ufeff'],
      ['noncharacters', '\uffff\ufffe\u{10ffff}'],
      ['SQL', "Robert'); drop table pet; -- $1 %s \\"],
      ['HTML', '<img src=x onerror="alert(1)">&amp;\u003c/script>'],
      ['JSON', '{"name":"x"}\\u0000\\"'],
      ['array literal of PostgreSQL', '{NULL,"a",\\,}'],
      ['prototype', '__proto__'],
    ])('a name is kept exactly: %s', async (_what, name) => {
      const outcome = await api.create(store, { name, categoryId: 1 });
      const data = { id, name, categoryId: '1', status: 'available' };
      expect(outcome).toEqual({ data });
      for (const other of apis)
        expect(await other.list(store, {})).toEqual({ data: [data] });
    });

    test.each<[newPet: object, message: string]>([
      ...[9223372036854775808n, -9223372036854775809n, 10n ** 60n].map(
        (categoryId) =>
          [{ name: 'Rex', categoryId }, int64Rule] as [object, string],
      ),
      ...['\u0000', 'a\u0000b', '\ud800', 'a\udc00\ud800b', '🐕\ud83d'].map(
        (name) => [{ name, categoryId: 1 }, nameRule] as [object, string],
      ),
      ...[
        'é🐕'.repeat(500).concat('x'),
        '🐕'.repeat(1001),
        'x'.repeat(20_000),
      ].map(
        (name) => [{ name, categoryId: 1 }, lengthRule] as [object, string],
      ),
      [
        { name: '\u0000', categoryId: 2n ** 63n },
        `${nameRule.slice(0, -1)}; ${int64Rule}`,
      ],
    ])(
      '%p is refused by both APIs with the same message',
      async (newPet, message) => {
        expect(await api.create(store, newPet)).toEqual(refused(message));
        expect(await api.list(store, {})).toEqual({ data: [] });
      },
    );

    // An ID of GraphQL is a string, and a categoryId of REST is a number.
    test.each([
      ...['x', '9223372036854775808', `${10n ** 60n}`, '1.5', '1e400'].map(
        (text) => [text, ''],
      ),
      ...['', '05', '+5', '5.0', '1e3', ' 5', '-0', '0x5'].map((text) => [
        text,
        ', in plain digits',
      ]),
    ])(
      'a category %p is refused, and the message tells why',
      async (categoryId, why) => {
        const message = `${int64Rule.slice(0, -1)}${api.name === 'REST' ? ', not a string' : why}.`;
        expect(await api.create(store, { name: 'Rex', categoryId })).toEqual(
          refused(message),
        );
      },
    );

    test.each<[newPet: unknown, message: string]>([
      ...[
        [1.5, ''],
        [true, ', not a boolean'],
        [null, ', not null'],
        [[1], ', not an array'],
        [{}, ', not an object'],
      ].map(
        ([categoryId, why]) =>
          [{ name: 'Rex', categoryId }, `${int64Rule.slice(0, -1)}${why}.`] as [
            object,
            string,
          ],
      ),
      ...[
        [null, 'null'],
        [5, 'a number'],
        [9007199254740993n, 'a number'],
        [true, 'a boolean'],
        [['Rex'], 'an array'],
        [{ toString: 1 }, 'an object'],
      ].map(
        ([name, type]) =>
          [{ name, categoryId: 1 }, `name must be a string, not ${type}.`] as [
            object,
            string,
          ],
      ),
      ...[
        ...['', 'toString', '__proto__', 'so ld'].map((status) => [status, '']),
        ...['Sold', ' sold', 'PENDING'].map((status) => [
          status,
          ', spelled exactly so',
        ]),
        [null, ', not null'],
        [1, ', not a number'],
        [['sold'], ', not an array'],
        [{ toString: 1 }, ', not an object'],
      ].map(
        ([status, why]) =>
          [
            { name: 'Rex', categoryId: 1, status },
            `${statusRule.slice(0, -1)}${why}.`,
          ] as [object, string],
      ),
      [{}, 'name is required; categoryId is required.'],
      [{ Name: 'Rex', categoryId: 1 }, 'name is required.'],
      [
        { name: null, categoryId: 'x', status: 'y' },
        `name must be a string, not null; ${int64Rule.slice(0, -1)}, not a string; ${statusRule}`,
      ],
      [null, noObject],
      [[{ name: 'Rex', categoryId: 1 }], noObject],
      ['Rex', noObject],
      [5, noObject],
    ])(
      '%p is refused by REST, and by the types of GraphQL',
      async (newPet, message) => {
        expect(await api.create(store, newPet)).toEqual(
          refused(api.name === 'REST' ? message : expect.any(String)),
        );
        expect(await api.list(store, {})).toEqual({ data: [] });
      },
    );

    test('names that were stored before the limit and exceed it are served', async () => {
      const names = [
        'short',
        'x'.repeat(40_000),
        'é'.repeat(20_000),
        'é"\\\n'.repeat(8001),
        'Bo',
        '🐕'.repeat(300_000),
      ];
      const ids = await stockNames(store.database, names);
      const pets = names.map((name, at) => ({
        id: `${ids[at]}`,
        name,
        categoryId: '1',
        status: 'available',
      }));
      // In parallel, so that they share batches with each other and with lists of
      // the short name.
      const limits = [1, 2, 3, 4, 5, 6, 100, 1, 4];
      const lists = await Promise.all(
        limits.map((limit) => api.list(store, { limit })),
      );
      expect(lists).toEqual(
        limits.map((limit) => ({ data: pets.slice(0, limit) })),
      );
      expect(
        await api.list(store, { status: 'available', after: ids[2] }),
      ).toEqual({ data: pets.slice(3) });
      const found = await Promise.all(ids.map((one) => api.find(store, one)));
      expect(found).toEqual(pets.map((data) => ({ data })));
    });
  });
}
