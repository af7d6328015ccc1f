import { stock } from '../support/database-access.ts';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { nodeForAll, type ServiceNode, type Store, storeForAll } from '../support/store.ts';

/** Small limits, one apart from what is sent. */
const env = {
  GRAPHQL_MAX_TOKENS: '60',
  GRAPHQL_MAX_DEPTH: '4',
  GRAPHQL_MAX_ALIASES: '3',
  GRAPHQL_MAX_ROOT_FIELDS: '5',
  GRAPHQL_MAX_DIRECTIVES: '2',
  GRAPHQL_MAX_COST: '50',
};

const store = storeForAll({}, () => stock(store.database, 3));
const node = nodeForAll(store, env);

/** The codes of what is wrong; `[]` when it is answered. */
async function codes(query: string, variables?: unknown, target: ServiceNode | Store = node): Promise<string[]> {
  const { errors = [], status } = await graphqlThrice(target, { query, variables });
  expect([status, ...errors.map(({ extensions }) => extensions.status)]).toEqual([200, ...errors.map(() => 400)]);
  return errors.map(({ extensions }) => extensions.code);
}

const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');
const ok: string[] = [];

describe('a limit lets pass what is exactly at it and refuses one more by its own code:', () => {
  test.each<[string, string, string[]]>([
    // `{`, `}` and 58 names.
    ['60 tokens', `{ pets { ${times(54, () => 'id')} } }`, ok],
    ['61 tokens', `{ pets { ${times(57, () => 'id')} } }`, ['TOO_MANY_TOKENS']],
    ['depth 4', '{ petsConnection { edges { node { id } } } }', ok],
    ['depth 5', '{ __type(name: "Pet") { fields { type { ofType { name } } } } }', ['QUERY_TOO_DEEP']],
    ['3 aliases', '{ pets { a: id b: id c: id } }', ok],
    ['4 aliases', '{ pets { a: id b: id c: id d: id } }', ['TOO_MANY_ALIASES']],
    ['4 aliases on several levels', '{ a: pets { b: id } c: pets { d: id } }', ['TOO_MANY_ALIASES']],
    ['5 root fields', `{ ${times(5, () => '__typename')} }`, ok],
    ['6 root fields', `{ ${times(6, () => '__typename')} }`, ['TOO_MANY_ROOT_FIELDS']],
    ['2 directives', '{ pets @skip(if: false) { id @include(if: true) } }', ok],
    ['3 directives', '{ pets @skip(if: false) @include(if: true) { id @skip(if: false) } }', ['TOO_MANY_DIRECTIVES']],
    ['a cost of 50', '{ pets(limit: 49) { id } }', ok],
    ['a cost of 51', '{ pets(limit: 50) { id } }', ['QUERY_TOO_COSTLY']],
  ])('%s', async (_what, query, expected) => {
    expect(await codes(query)).toEqual(expected);
  });
});

const list = 'query ($n: Int) { pets(limit: $n) { id } }';

describe('the cost counts what may be answered, wherever the number stands:', () => {
  test.each<[string, string, unknown, boolean]>([
    ['first, too', '{ petsConnection(first: 50) { edges { node { id } } } }', {}, false],
    ['a variable that is absent counts 20', list, {}, true],
    ['a variable that is null counts 20', list, { n: null }, true],
    [
      'a fragment twice, by other fields',
      '{ ...F b: pets(limit: 24) { id } } fragment F on Query { pets(limit: 25) { id } }',
      {},
      false,
    ],
    ['no number at all, three times', '{ a: pets { id } b: pets { id } c: pets { id } }', {}, false],
    ['introspection counts one', '{ pets(limit: 49) { id } __type(name: "Pet") { name } }', {}, false],
    ['introspection and what is left', '{ pets(limit: 48) { id } __type(name: "Pet") { name } }', {}, true],
    ['a skipped field counts, too', '{ pets(limit: 50) @skip(if: true) { id } }', {}, false],
  ])('%s', async (_what, query, variables, isAnswered) => {
    expect(await codes(query, variables)).toEqual(isAnswered ? [] : ['QUERY_TOO_COSTLY']);
  });

  // Whose word it is when no list takes such a number.
  test.each([
    [0, 'BAD_USER_INPUT'],
    [-1, 'BAD_USER_INPUT'],
    [101, 'QUERY_TOO_COSTLY'],
    [2_147_483_647, 'QUERY_TOO_COSTLY'],
  ])('%i is %s', async (n, code) => {
    expect([await codes(list, { n }), await codes(`{ pets(limit: ${n}) { id } }`)]).toEqual([[code], [code]]);
  });
});

describe('a variable counts whatever its name, that of an inherited member too:', () => {
  test.each(['n', 'toString', 'constructor', '__proto__'])('%s', async (name) => {
    const byDefault = (size: number) => `query ($${name}: Int = ${size}) { pets(limit: $${name}) { id } }`;
    expect(await codes(byDefault(50))).toEqual(['QUERY_TOO_COSTLY']);
    expect(await codes(byDefault(49))).toEqual([]);
    // A __proto__ cannot be given.
    const isGiven = name !== '__proto__';
    expect(await codes(byDefault(2), JSON.parse(`{"${name}":50}`))).toEqual(isGiven ? ['QUERY_TOO_COSTLY'] : []);
    expect(await codes(byDefault(50), JSON.parse(`{"${name}":2}`))).toEqual(isGiven ? [] : ['QUERY_TOO_COSTLY']);
    // Absent and without a default it is a page of 20.
    const pages = (count: number) => times(count, (at) => `a${at}: pets(limit: $${name}) { id }`);
    expect(await codes(`query ($${name}: Int) { ${pages(2)} }`)).toEqual([]);
    expect(await codes(`query ($${name}: Int) { ${pages(3)} }`)).toEqual(['QUERY_TOO_COSTLY']);
  });

  test('and what is no number counts as a full page', async () => {
    for (const n of ['many', {}, { valueOf: 2 }, [1, 2]])
      expect(await codes(list, { n })).toEqual(['QUERY_TOO_COSTLY']);
  });
});

/** Each fragment spreads the next one twice: written out there are 2^levels leaves. */
function doubling(levels: number, type: string, leaf: string): string {
  const start = type === 'Query' ? '{ ...F0 }' : '{ pets { ...F0 } }';
  const fragments = times(levels, (at) => `fragment F${at} on ${type} { ...F${at + 1} ...F${at + 1} }`);
  return `${start} ${fragments} fragment F${levels} on ${type} { ${leaf} }`;
}

const nested = (depth: number, leaf = 'name') => `${'fields { type { '.repeat(depth)}${leaf}${' } }'.repeat(depth)}`;

/** By the limits that hold by default; a code may come several times. */
const unique = async (query: string) => {
  const { status, errors = [] } = await graphqlText(store, { query });
  expect(status).toBe(200);
  return [...new Set(errors.map(({ extensions }) => extensions.code))];
};

test.each<[string, string, string[]]>([
  ['512 fields, doubled', doubling(9, 'Pet', 'id'), []],
  ['1,024 fields, doubled', doubling(10, 'Pet', 'id'), ['TOO_MANY_TOKENS']],
  ['2^80 fields', doubling(80, 'Pet', 'id'), ['TOO_MANY_TOKENS']],
  ['64 root fields', doubling(6, 'Query', '__typename'), ['TOO_MANY_ROOT_FIELDS']],
  ['2^60 root fields', doubling(60, 'Query', 'pets { id }'), ['TOO_MANY_TOKENS', 'TOO_MANY_ROOT_FIELDS']],
  ['2^60 aliases', doubling(60, 'Pet', 'a: id'), ['TOO_MANY_TOKENS', 'TOO_MANY_ALIASES']],
  [
    '2^60 directives on spreads',
    doubling(60, 'Pet', 'id').replace('...F40', '...F40 @skip(if: false)'),
    ['TOO_MANY_TOKENS', 'TOO_MANY_DIRECTIVES'],
  ],
  ['a spread of itself', '{ pets { ...A } } fragment A on Pet { id ...A }', ['GRAPHQL_VALIDATION_FAILED']],
  [
    'a spread of itself by another one, twice each',
    '{ ...A } fragment A on Query { ...B ...B } fragment B on Query { pets { id } ...A ...A }',
    ['GRAPHQL_VALIDATION_FAILED'],
  ],
  ['a fragment that is nowhere', '{ pets { ...Nowhere } }', ['GRAPHQL_VALIDATION_FAILED']],
  [
    // graphql-js has a limit of its own for introspection.
    'depth, in steps',
    `{ __type(name: "Pet") { ...A } } fragment A on __Type { ${nested(4, '...B')} } fragment B on __Type { ${nested(4)} }`,
    ['QUERY_TOO_DEEP', 'GRAPHQL_VALIDATION_FAILED'],
  ],
  ['aliases', `{ pets { ...A } } fragment A on Pet { ${times(51, (at) => `a${at}: id`)} }`, ['TOO_MANY_ALIASES']],
  // Costly to judge.
  ['arguments 150 times', `{ ${times(150, () => 'pets(limit: 1) { id }')} }`, ['TOO_MANY_TOKENS']],
  [
    'fragments that each spread all later ones',
    `{ ...F0 } ${times(14, (at) => `fragment F${at} on Query { ${times(14, (other) => (other > at ? `...F${other}` : '')).trim()} __typename }`)}`,
    ['TOO_MANY_TOKENS', 'TOO_MANY_ROOT_FIELDS'],
  ],
  [
    'fragments in conflict',
    `{ pets { ${times(40, (at) => `...F${at}`)} } } ${times(40, (at) => `fragment F${at} on Pet { a${at}: id x: name }`)}`,
    ['TOO_MANY_ALIASES'],
  ],
  ['unknown fields', `{ ${times(900, (at) => `x${at}`)} }`, ['TOO_MANY_ROOT_FIELDS', 'GRAPHQL_VALIDATION_FAILED']],
  ['nested lists', `{ pets(status: ${'['.repeat(480)}${']'.repeat(480)}) { id } }`, ['GRAPHQL_VALIDATION_FAILED']],
])('what hides in fragments is counted: %s', async (_what, query, expected) => {
  expect(await unique(query)).toEqual(expected);
});
