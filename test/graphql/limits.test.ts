import { stock } from '../support/database-access.ts';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import {
  nodeForAll,
  type ServiceNode,
  type Store,
  storeForAll,
} from '../support/store.ts';

/** Small limits: the documents are at a limit, or one beyond it. */
const env = {
  GRAPHQL_MAX_TOKENS: '60',
  GRAPHQL_MAX_DEPTH: '4',
  GRAPHQL_MAX_ALIASES: '3',
  GRAPHQL_MAX_COST: '50',
};

const store = storeForAll({}, () => stock(store.database, 3));
const node = nodeForAll(store, env);

/** @returns the codes of the errors; `[]` without one */
async function codes(
  query: string,
  variables?: unknown,
  target: ServiceNode | Store = node,
): Promise<string[]> {
  const { errors = [], status } = await graphqlThrice(target, {
    query,
    variables,
  });
  expect([
    status,
    ...errors.map(({ extensions }) => extensions.status),
  ]).toEqual([200, ...errors.map(() => 400)]);
  return errors.map(({ extensions }) => extensions.code);
}

const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');
const ok: string[] = [];

describe('a document at a limit passes, and one beyond it is refused with the code of the limit:', () => {
  test.each<[string, string, string[]]>([
    // `{`, `}` and 58 names.
    ['60 tokens', `{ pets { ${times(54, () => 'id')} } }`, ok],
    ['61 tokens', `{ pets { ${times(57, () => 'id')} } }`, ['TOO_MANY_TOKENS']],
    ['depth 4', '{ petsConnection { edges { node { id } } } }', ok],
    [
      'depth 5',
      '{ __type(name: "Pet") { fields { type { ofType { name } } } } }',
      ['QUERY_TOO_DEEP'],
    ],
    ['3 aliases', '{ pets { a: id b: id c: id } }', ok],
    ['4 aliases', '{ pets { a: id b: id c: id d: id } }', ['TOO_MANY_ALIASES']],
    [
      '4 aliases on several levels',
      '{ a: pets { b: id } c: pets { d: id } }',
      ['TOO_MANY_ALIASES'],
    ],
    ['a cost of 50', '{ pets(limit: 49) { id } }', ok],
    ['a cost of 51', '{ pets(limit: 50) { id } }', ['QUERY_TOO_COSTLY']],
  ])('%s', async (_what, query, expected) => {
    expect(await codes(query)).toEqual(expected);
  });
});

const list = 'query ($n: Int) { pets(limit: $n) { id } }';

describe('the cost counts the largest page that the document allows:', () => {
  test.each<[string, string, unknown, boolean]>([
    [
      '`first` counts',
      '{ petsConnection(first: 50) { edges { node { id } } } }',
      {},
      false,
    ],
    [
      'totals count once, not for each item',
      '{ petsConnection(first: 29) { totalCount isTotalCountExact } }',
      {},
      true,
    ],
    [
      'totals beside 30 items',
      '{ petsConnection(first: 30) { totalCount isTotalCountExact } }',
      {},
      false,
    ],
    ['a variable that is absent counts 20', list, {}, true],
    ['a variable that is null counts 20', list, { n: null }, true],
    [
      'a list in a fragment and one beside it',
      '{ ...F b: pets(limit: 24) { id } } fragment F on Query { pets(limit: 25) { id } }',
      {},
      false,
    ],
    [
      'three lists without a limit',
      '{ a: pets { id } b: pets { id } c: pets { id } }',
      {},
      false,
    ],
    [
      'introspection counts one',
      '{ pets(limit: 49) { id } __type(name: "Pet") { name } }',
      {},
      false,
    ],
    [
      'introspection and a list within the rest',
      '{ pets(limit: 48) { id } __type(name: "Pet") { name } }',
      {},
      true,
    ],
    [
      'a skipped field counts',
      '{ pets(limit: 50) @skip(if: true) { id } }',
      {},
      false,
    ],
  ])('%s', async (_what, query, variables, isAccepted) => {
    expect(await codes(query, variables)).toEqual(
      isAccepted ? [] : ['QUERY_TOO_COSTLY'],
    );
  });

  // Below 1 the field refuses the limit; a large limit exceeds the cost first.
  test.each([
    [0, 'BAD_USER_INPUT'],
    [-1, 'BAD_USER_INPUT'],
    [101, 'QUERY_TOO_COSTLY'],
    [2_147_483_647, 'QUERY_TOO_COSTLY'],
  ])('%i is %s', async (n, code) => {
    expect([
      await codes(list, { n }),
      await codes(`{ pets(limit: ${n}) { id } }`),
    ]).toEqual([[code], [code]]);
  });
});

describe('the cost reads a variable of any name, also that of an inherited member:', () => {
  test.each(['n', 'toString', 'constructor', '__proto__'])(
    '%s',
    async (name) => {
      const byDefault = (size: number) =>
        `query ($${name}: Int = ${size}) { pets(limit: $${name}) { id } }`;
      expect(await codes(byDefault(50))).toEqual(['QUERY_TOO_COSTLY']);
      expect(await codes(byDefault(49))).toEqual([]);
      // The value of a variable named __proto__ is refused, not dropped.
      const isReadable = name !== '__proto__';
      expect(await codes(byDefault(2), JSON.parse(`{"${name}":50}`))).toEqual(
        isReadable ? ['QUERY_TOO_COSTLY'] : ['BAD_USER_INPUT'],
      );
      expect(await codes(byDefault(50), JSON.parse(`{"${name}":2}`))).toEqual(
        isReadable ? [] : ['BAD_USER_INPUT'],
      );
      // Without a value and a default the page has 20 items.
      const pages = (count: number) =>
        times(count, (at) => `a${at}: pets(limit: $${name}) { id }`);
      expect(await codes(`query ($${name}: Int) { ${pages(2)} }`)).toEqual([]);
      expect(await codes(`query ($${name}: Int) { ${pages(3)} }`)).toEqual([
        'QUERY_TOO_COSTLY',
      ]);
    },
  );

  test('a value that is no number counts as a full page', async () => {
    for (const n of ['many', {}, { valueOf: 2 }, [1, 2]])
      expect(await codes(list, { n })).toEqual(['QUERY_TOO_COSTLY']);
  });
});

/**
 * Each fragment spreads the next one twice: expanded, there are 2^levels
 * leaves.
 */
function doubling(levels: number, type: string, leaf: string): string {
  const start = type === 'Query' ? '{ ...F0 }' : '{ pets { ...F0 } }';
  const fragments = times(
    levels,
    (at) => `fragment F${at} on ${type} { ...F${at + 1} ...F${at + 1} }`,
  );
  return `${start} ${fragments} fragment F${levels} on ${type} { ${leaf} }`;
}

const nested = (depth: number, leaf = 'name') =>
  `${'fields { type { '.repeat(depth)}${leaf}${' } }'.repeat(depth)}`;

/** @returns the distinct codes of the errors, with the default limits */
const unique = async (query: string) => {
  const { status, errors = [] } = await graphqlText(store, { query });
  expect(status).toBe(200);
  return [...new Set(errors.map(({ extensions }) => extensions.code))];
};

test.each<[string, string, string[]]>([
  ['512 fields, doubled', doubling(9, 'Pet', 'id'), []],
  ['1,024 fields, doubled', doubling(10, 'Pet', 'id'), ['TOO_MANY_TOKENS']],
  ['2^80 fields', doubling(80, 'Pet', 'id'), ['TOO_MANY_TOKENS']],
  [
    '2^60 root fields',
    doubling(60, 'Query', 'pets { id }'),
    ['TOO_MANY_TOKENS'],
  ],
  [
    '2^60 aliases',
    doubling(60, 'Pet', 'a: id'),
    ['TOO_MANY_TOKENS', 'TOO_MANY_ALIASES'],
  ],
  [
    '2^60 directives on spreads',
    doubling(60, 'Pet', 'id').replace('...F40', '...F40 @skip(if: false)'),
    ['TOO_MANY_TOKENS'],
  ],
  [
    'a spread of itself',
    '{ pets { ...A } } fragment A on Pet { id ...A }',
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
  [
    'two fragments that spread each other twice',
    '{ ...A } fragment A on Query { ...B ...B } fragment B on Query { pets { id } ...A ...A }',
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
  [
    'an undefined fragment',
    '{ pets { ...Nowhere } }',
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
  [
    // graphql-js has a limit of its own for introspection.
    'depth over several fragments',
    `{ __type(name: "Pet") { ...A } } fragment A on __Type { ${nested(4, '...B')} } fragment B on __Type { ${nested(4)} }`,
    ['QUERY_TOO_DEEP', 'GRAPHQL_VALIDATION_FAILED'],
  ],
  [
    '80 directives',
    `{ ${times(40, (at) => `a${at}: pets @skip(if: true) @include(if: true) { id }`)} }`,
    [],
  ],
  [
    'aliases',
    `{ pets { ...A } } fragment A on Pet { ${times(51, (at) => `a${at}: id`)} }`,
    ['TOO_MANY_ALIASES'],
  ],
  // Documents that are costly to validate.
  [
    'arguments 150 times',
    `{ ${times(150, () => 'pets(limit: 1) { id }')} }`,
    ['TOO_MANY_TOKENS'],
  ],
  [
    'fragments that each spread all later ones',
    `{ ...F0 } ${times(14, (at) => `fragment F${at} on Query { ${times(14, (other) => (other > at ? `...F${other}` : '')).trim()} __typename }`)}`,
    ['TOO_MANY_TOKENS'],
  ],
  [
    'fragments in conflict',
    `{ pets { ${times(40, (at) => `...F${at}`)} } } ${times(40, (at) => `fragment F${at} on Pet { a${at}: id x: name }`)}`,
    ['TOO_MANY_ALIASES'],
  ],
  [
    'unknown fields',
    `{ ${times(900, (at) => `x${at}`)} }`,
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
  [
    'nested lists',
    `{ pets(status: ${'['.repeat(480)}${']'.repeat(480)}) { id } }`,
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
])(
  'the default limits count expanded fragments: %s',
  async (_what, query, expected) => {
    expect(await unique(query)).toEqual(expected);
  },
);
