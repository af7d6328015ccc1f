import { getIntrospectionQuery } from 'graphql';
import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, type Store, startNode, startStore } from '../support/store.ts';

/** Small limits, one apart from what is sent. */
const env = {
  GRAPHQL_MAX_TOKENS: '60',
  GRAPHQL_MAX_DEPTH: '4',
  GRAPHQL_MAX_ALIASES: '3',
  GRAPHQL_MAX_ROOT_FIELDS: '5',
  GRAPHQL_MAX_DIRECTIVES: '2',
  GRAPHQL_MAX_COST: '50',
};

let store: Store;
let node: ServiceNode;
beforeAll(async () => {
  store = await startStore();
  await stock(store.database, 3);
  node = await startNode(store, env);
});
afterAll(async () => {
  await node.close();
  await store.close();
});

/** The codes of what is wrong, the same however often it is asked; `[]` when it is answered. */
async function codes(query: string, variables?: unknown, target: ServiceNode | Store = node): Promise<string[]> {
  const seen = new Set<string>();
  for (let time = 0; time < 3; time += 1) {
    const { errors = [], status } = await graphqlText(target, { query, variables });
    expect(status).toBe(200);
    seen.add(JSON.stringify(errors.map(({ extensions }) => extensions.code)));
    for (const { extensions } of errors) expect(extensions.status).toBe(400);
  }
  expect(seen.size).toBe(1);
  return JSON.parse([...seen][0] as string);
}

const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');
const ok: string[] = [];

describe('a limit lets pass what is exactly at it and refuses one more by its own code:', () => {
  test.each<[string, string, string[]]>([
    // `{`, `}` and 58 names.
    ['60 tokens', `{ pets { ${times(54, () => 'id')} } }`.replace('{ pets', '{ pets '), ok],
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

  test('several at once are all told', async () => {
    expect(
      await codes('{ a: __typename b: __typename c: __typename d: __typename e: __typename f: __typename }'),
    ).toEqual(['TOO_MANY_ALIASES', 'TOO_MANY_ROOT_FIELDS']);
  });

  test.each([
    ['tokens', { query: `{ ${times(100, () => '__typename')} }` }, /tokens/],
    [
      'depth',
      { query: '{ __type(name: "Pet") { fields { type { ofType { name } } } } }' },
      /nested too deeply: 5, at most 4/,
    ],
    ['aliases', { query: '{ pets { a: id b: id c: id d: id } }' }, /too many aliases: 4, at most 3/],
    ['cost', { query: '{ pets(limit: 50) { id } }' }, /may cost too much: 51, at most 50/],
  ])('the message of the limit of %s says how many and how many at most', async (_limit, body, message) => {
    expect((await graphqlText(node, body)).errors?.[0]?.message).toMatch(message);
  });
});

describe('the cost counts what may be answered, wherever the number stands:', () => {
  const list = 'query ($n: Int) { pets(limit: $n) { id } }';
  test.each<[string, string, unknown, boolean]>([
    ['a literal', '{ pets(limit: 50) { id } }', {}, false],
    ['first, too', '{ petsConnection(first: 50) { edges { node { id } } } }', {}, false],
    ['a variable', list, { n: 50 }, false],
    ['a small variable', list, { n: 49 }, true],
    ['a variable that is absent counts 20', list, {}, true],
    ['a variable that is null counts 20', list, { n: null }, true],
    ['a default', 'query ($n: Int = 50) { pets(limit: $n) { id } }', {}, false],
    ['a default that is overruled', 'query ($n: Int = 50) { pets(limit: $n) { id } }', { n: 2 }, true],
    ['a small default that is overruled', 'query ($n: Int = 2) { pets(limit: $n) { id } }', { n: 50 }, false],
    ['in a fragment', '{ ...F } fragment F on Query { pets(limit: 50) { id } }', {}, false],
    ['in an inline fragment', '{ ... on Query { ... { pets(limit: 50) { id } } } }', {}, false],
    [
      'a fragment twice, by other fields',
      '{ ...F b: pets(limit: 24) { id } } fragment F on Query { pets(limit: 25) { id } }',
      {},
      false,
    ],
    ['no number at all counts 20', '{ a: pets { id } b: pets { id } }', {}, true],
    ['no number at all, three times', '{ a: pets { id } b: pets { id } c: pets { id } }', {}, false],
    ['introspection counts one', '{ pets(limit: 49) { id } __schema { queryType { name } } }', {}, false],
    ['introspection and what is left', '{ pets(limit: 48) { id } __type(name: "Pet") { name } }', {}, true],
    ['a skipped field counts, too', '{ pets(limit: 50) @skip(if: true) { id } }', {}, false],
    ['limit by another name', '{ limit: pets(limit: 50) { id } }', {}, false],
    [
      'the operation that is run',
      'query ($n: Int) { pets(limit: $n) { id } } fragment G on Query { __typename }',
      { n: 50 },
      false,
    ],
  ])('%s', async (_what, query, variables, isAnswered) => {
    // A fragment that is not used is refused by graphql-js itself.
    const unused = query.includes('fragment G') ? query.replace('{ pets(', '{ ...G pets(') : query;
    expect(await codes(unused, variables)).toEqual(isAnswered ? [] : ['QUERY_TOO_COSTLY']);
  });

  test('numbers that no list takes are left to the service, whose word it is', async () => {
    for (const n of [0, -1, 101, 2_147_483_647]) {
      const expected = n > 100 ? 'QUERY_TOO_COSTLY' : 'BAD_USER_INPUT';
      expect(await codes(list, { n })).toEqual([expected]);
      expect(await codes(`{ pets(limit: ${n}) { id } }`)).toEqual([expected]);
    }
  });
});

describe('a variable counts whatever its name, that of an inherited member too:', () => {
  const names = ['toString', 'constructor', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', 'toLocaleString'];

  test.each(names)('%s', async (name) => {
    const byDefault = (size: number) => `query ($${name}: Int = ${size}) { pets(limit: $${name}) { id } }`;
    expect(await codes(byDefault(50))).toEqual(['QUERY_TOO_COSTLY']);
    expect(await codes(byDefault(49))).toEqual([]);
    expect(await codes(byDefault(2), { [name]: 50 })).toEqual(['QUERY_TOO_COSTLY']);
    expect(await codes(byDefault(50), { [name]: 2 })).toEqual([]);
    // Absent and without a default it is a page of 20.
    const pages = (count: number) => times(count, (at) => `a${at}: pets(limit: $${name}) { id }`);
    expect(await codes(`query ($${name}: Int) { ${pages(2)} }`)).toEqual([]);
    expect(await codes(`query ($${name}: Int) { ${pages(3)} }`)).toEqual(['QUERY_TOO_COSTLY']);
  });

  test('__proto__, which cannot be given, is its default', async () => {
    const byDefault = (size: number) => `query ($__proto__: Int = ${size}) { pets(limit: $__proto__) { id } }`;
    for (const variables of [{}, JSON.parse('{"__proto__":2}'), JSON.parse('{"__proto__":50}')]) {
      expect(await codes(byDefault(50), variables)).toEqual(['QUERY_TOO_COSTLY']);
      expect(await codes(byDefault(49), variables)).toEqual([]);
    }
  });

  test('and what is no number counts as a full page', async () => {
    for (const n of ['many', {}, { valueOf: 2 }, [1, 2]]) {
      expect(await codes('query ($n: Int) { pets(limit: $n) { id } }', { n })).toEqual(['QUERY_TOO_COSTLY']);
    }
  });
});

test('with the default limits the standard introspection passes, all options on, and 50 pages of 100', async () => {
  const options = { descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true };
  const query = getIntrospectionQuery({ ...options, inputValueDeprecation: true, oneOf: true });
  expect(await codes(query, {}, store)).toEqual([]);
  expect(await codes(`{ ${times(50, (at) => `a${at}: pets(limit: 100) { id }`)} }`, {}, store)).toEqual([]);
});

/** Each fragment spreads the next one twice: written out there are 2^levels leaves. */
function doubling(levels: number, type: string, leaf: string, start: string): string {
  const fragments = Array.from(
    { length: levels },
    (_, at) => `fragment F${at} on ${type} { ...F${at + 1} ...F${at + 1} }`,
  );
  return `${start} ${fragments.join(' ')} fragment F${levels} on ${type} { ${leaf} }`;
}

const onPet = (levels: number, leaf: string) => doubling(levels, 'Pet', leaf, '{ pets { ...F0 } }');
const onQuery = (levels: number, leaf: string) => doubling(levels, 'Query', leaf, '{ ...F0 }');

/** By the limits that hold by default; a code may come several times. */
const unique = async (query: string) => {
  const { errors = [] } = await graphqlText(store, { query });
  return [...new Set(errors.map(({ extensions }) => extensions.code))];
};

describe('fragments that double each other', () => {
  test.each<[string, string, string[]]>([
    ['512 fields are answered', onPet(9, 'id'), []],
    ['1,024 fields are too many', onPet(10, 'id'), ['TOO_MANY_TOKENS']],
    ['2^30 fields', onPet(30, 'id'), ['TOO_MANY_TOKENS']],
    ['2^80 fields', onPet(80, 'id'), ['TOO_MANY_TOKENS']],
    ['32 root fields are answered', onQuery(5, '__typename'), []],
    ['64 root fields are too many', onQuery(6, '__typename'), ['TOO_MANY_ROOT_FIELDS']],
    ['2^60 root fields', onQuery(60, 'pets { id }'), ['TOO_MANY_TOKENS', 'TOO_MANY_ROOT_FIELDS']],
    ['2^6 aliases', onPet(6, 'a: id'), ['TOO_MANY_ALIASES']],
    ['2^60 aliases', onPet(60, 'a: id'), ['TOO_MANY_TOKENS', 'TOO_MANY_ALIASES']],
    ['2^6 directives', onPet(6, 'id @skip(if: false)'), ['TOO_MANY_DIRECTIVES']],
    [
      '2^60 directives on spreads',
      onPet(60, 'id').replace('...F40', '...F40 @skip(if: false)'),
      ['TOO_MANY_TOKENS', 'TOO_MANY_DIRECTIVES'],
    ],
  ])('%s', async (_what, query, expected) => {
    expect(await unique(query)).toEqual(expected);
  });
});

describe('fragments that spread themselves', () => {
  test.each([
    ['directly', '{ pets { ...A } } fragment A on Pet { id ...A }'],
    ['by another one', '{ pets { ...A } } fragment A on Pet { ...B } fragment B on Pet { ...A }'],
    ['at the root', '{ ...A } fragment A on Query { ...B } fragment B on Query { pets { id } ...A }'],
    ['by inline fragments', '{ pets { ...A } } fragment A on Pet { ... on Pet { ... { ...A } } }'],
    ['twice each', '{ pets { ...A } } fragment A on Pet { ...B ...B } fragment B on Pet { ...A ...A }'],
    ['without being used', '{ __typename } fragment A on Pet { ...A }'],
  ])('%s are refused', async (_how, query) => {
    expect(await unique(query)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
  });
});

describe('what hides in fragments is counted:', () => {
  // graphql-js has a limit of its own for introspection.
  const introspective = ['QUERY_TOO_DEEP', 'GRAPHQL_VALIDATION_FAILED'];
  const nested = (depth: number) => `${'fields { type { '.repeat(depth)}name${' } }'.repeat(depth)}`;
  test.each<[string, string, string[]]>([
    ['depth', `{ __type(name: "Pet") { ...A } } fragment A on __Type { ${nested(8)} }`, introspective],
    [
      'depth, in steps',
      `{ __type(name: "Pet") { ...A } } fragment A on __Type { ${nested(4).replace('name', '...B')} } fragment B on __Type { ${nested(4)} }`,
      introspective,
    ],
    [
      'aliases',
      `{ pets { ...A } } fragment A on Pet { ${Array.from({ length: 51 }, (_, at) => `a${at}: id`).join(' ')} }`,
      ['TOO_MANY_ALIASES'],
    ],
    [
      'cost',
      `{ ...A ...B } fragment A on Query { ${Array.from({ length: 30 }, (_, at) => `a${at}: pets(limit: 100) { id }`).join(' ')} } fragment B on Query { ... { ${Array.from({ length: 20 }, (_, at) => `b${at}: petsConnection(first: 100) { edges { node { id } } }`).join(' ')} } }`,
      [],
    ],
    ['a fragment that is nowhere', '{ pets { ...Nowhere } }', ['GRAPHQL_VALIDATION_FAILED']],
  ])('%s', async (_what, query, expected) => {
    expect(await unique(query)).toEqual(expected);
  });
});

describe('documents that are costly to judge are answered', () => {
  test.each([
    ['the same field 950 times', `{ pets { ${times(950, () => 'id')} } }`],
    ['the same field with arguments 150 times', `{ ${times(150, () => 'pets(limit: 1) { id }')} }`],
    ['fields in conflict', `{ pets { ${times(300, (at) => `a: ${at % 2 ? 'id' : 'name'}`)} } }`],
    [
      'fragments that each spread all later ones',
      `{ ...F0 } ${times(14, (at) => `fragment F${at} on Query { ${times(14, (other) => (other > at ? `...F${other}` : '')).trim()} __typename }`)}`,
    ],
    [
      'fragments in conflict',
      `{ pets { ${times(40, (at) => `...F${at}`)} } } ${times(40, (at) => `fragment F${at} on Pet { a${at}: id x: name }`)}`,
    ],
    ['240 variables', `query (${times(240, (at) => `$v${at}: Int`)}) { __typename }`],
    ['unknown directives', `{ __typename ${times(480, () => '@x')} }`],
    ['unknown fields', `{ ${times(900, (at) => `x${at}`)} }`],
    ['nested lists', `{ pets(status: ${'['.repeat(480)}${']'.repeat(480)}) { id } }`],
    ['nested inline fragments', `{ ${'... { '.repeat(300)}__typename${' }'.repeat(300)} }`],
  ])('%s', async (_what, query) => {
    const { status, errors = [] } = await graphqlText(store, { query });
    expect(status).toBe(200);
    for (const { extensions } of errors) expect(extensions.status).toBe(400);
    expect(await graphqlText(store, { query: '{ __typename }' })).toMatchObject({ data: { __typename: 'Query' } });
  });
});
