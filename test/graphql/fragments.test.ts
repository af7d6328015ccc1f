import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Fragments cannot walk around the limits, and measuring them comes to an end. */
const store = storeForAll({}, async () => {
  await stock(store.database, 2);
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

async function codes(query: string): Promise<string[]> {
  let found: string[] = [];
  // Interpreted the first time, compiled the second, from the cache the third.
  for (let time = 0; time < 3; time += 1) {
    const { errors = [] } = await graphqlText(store, { query });
    found = errors.map(({ extensions }) => extensions.code);
  }
  return [...new Set(found)];
}

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
    expect(await codes(query)).toEqual(expected);
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
    expect(await codes(query)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
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
    expect(await codes(query)).toEqual(expected);
  });
});

describe('documents that are costly to judge are answered', () => {
  const many = (count: number, text: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => text(at)).join(' ');
  test.each([
    ['the same field 950 times', `{ pets { ${many(950, () => 'id')} } }`],
    ['the same field with arguments 150 times', `{ ${many(150, () => 'pets(limit: 1) { id }')} }`],
    ['fields in conflict', `{ pets { ${many(300, (at) => `a: ${at % 2 ? 'id' : 'name'}`)} } }`],
    [
      'fragments that each spread all later ones',
      `{ ...F0 } ${many(14, (at) => `fragment F${at} on Query { ${many(14, (other) => (other > at ? `...F${other}` : '')).trim()} __typename }`)}`,
    ],
    [
      'fragments in conflict',
      `{ pets { ${many(40, (at) => `...F${at}`)} } } ${many(40, (at) => `fragment F${at} on Pet { a${at}: id x: name }`)}`,
    ],
    ['240 variables', `query (${many(240, (at) => `$v${at}: Int`)}) { __typename }`],
    ['unknown directives', `{ __typename ${many(480, () => '@x')} }`],
    ['unknown fields', `{ ${many(900, (at) => `x${at}`)} }`],
    ['nested lists', `{ pets(status: ${'['.repeat(480)}${']'.repeat(480)}) { id } }`],
    ['nested inline fragments', `{ ${'... { '.repeat(300)}__typename${' }'.repeat(300)} }`],
  ])('%s', async (_what, query) => {
    const { status, errors = [] } = await graphqlText(store, { query });
    expect(status).toBe(200);
    for (const { extensions } of errors) expect(extensions.status).toBe(400);
    expect(await graphqlText(store, { query: '{ __typename }' })).toMatchObject({ data: { __typename: 'Query' } });
  });
});
