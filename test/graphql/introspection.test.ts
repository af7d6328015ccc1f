import { getIntrospectionQuery } from 'graphql';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/**
 * Documents that are costly, odd, or probe the schema; http-status.test.ts has the
 * table of refused documents.
 */

const store = storeForAll();

test('a document of extreme depth or length is refused for its number of tokens while it is parsed', async () => {
  for (const query of [
    '{a'.repeat(50_000),
    `{pets(limit:${'['.repeat(50_000)}`,
    '{a}'.repeat(50_000),
  ]) {
    const { errors } = await graphqlText(store, { query });
    const message = expect.stringMatching(
      /^Syntax Error: Document contains more tha[nt] \d+ tokens/,
    );
    expect(errors).toMatchObject([
      { message, extensions: { code: 'TOO_MANY_TOKENS', status: 400 } },
    ]);
  }
});

test.each([
  [
    'then or catch, the methods of a promise',
    '{ then: __typename pets { then: id catch: name } }',
  ],
  [
    'an inherited name',
    '{ hasOwnProperty: __typename pets { valueOf: id toString: name constructor: id } }',
  ],
])('an alias may be %s', async (_what, query) => {
  expect((await graphqlThrice(store, { query })).errors).toBeUndefined();
});

describe('with GRAPHQL_INTROSPECTION=false', () => {
  const closed = nodeForAll(store, { GRAPHQL_INTROSPECTION: 'false' });

  test.each([
    ['the standard query', getIntrospectionQuery()],
    ['__schema', '{ __schema { queryType { name } } }'],
    ['__type', '{ __type(name: "Pet") { name } }'],
    [
      'in a fragment',
      '{ ...F } fragment F on Query { __schema { queryType { name } } }',
    ],
    ['on a mutation', 'mutation { __schema { queryType { name } } }'],
    [
      'with a byte order mark and commas',
      '\ufeff{,,,__schema,,,{,queryType,{,name,},},}',
    ],
  ])('introspection %s is refused', async (_how, query) => {
    const { data, errors = [] } = await graphqlThrice(closed, { query });
    expect([data ?? null, errors.length > 0]).toEqual([null, true]);
    for (const { message } of errors) {
      expect(message).toMatch(
        /^(?:GraphQL introspection has been disabled|Cannot query)/,
      );
    }
  });

  test('__typename is answered, because clients need it', async () => {
    expect(
      await graphqlText(closed, { query: '{ __typename }' }),
    ).toMatchObject({ data: { __typename: 'Query' } });
  });

  const input =
    'mutation ($input: NewPet!) { createPet(input: $input) { id } }';

  describe('no message suggests a name:', () => {
    test.each<[string, string, unknown, string]>([
      ['a field', '{ petz { id } }', {}, 'pets'],
      ['an argument', '{ pets(statu: sold) { id } }', {}, '"status"'],
      ['an enum value', '{ pets(status: sol) { id } }', {}, 'sold'],
      [
        'a type',
        'query ($s: PetStatu) { pets(status: $s) { id } }',
        {},
        'PetStatus"',
      ],
      ['a type condition', '{ ... on Querry { pets { id } } }', {}, '"Query"'],
      ['a directive', '{ pets @skp(if: true) { id } }', {}, '@skip'],
      [
        'an enum value in a variable',
        'query ($s: PetStatus) { pets(status: $s) { id } }',
        { s: 'sol' },
        'sold',
      ],
      [
        'an enum value in a variable of a subscription',
        'subscription ($s: PetStatus) { petAdded(status: $s) { id } }',
        { s: 'sol' },
        'sold',
      ],
      [
        'an input field in a variable',
        input,
        { input: { name: 'x', categoryId: 1, statu: 'sold' } },
        '"status"',
      ],
      [
        'two input fields in a variable',
        input,
        { input: { name: 'x', categoryId: 1, categoryI: 1, nam: 1 } },
        'Did',
      ],
    ])('%s', async (_what, query, variables, secret) => {
      const { data, errors = [] } = await graphqlThrice(
        closed,
        { query, variables },
        closed.key,
        { accept: 'application/json, text/event-stream;q=0.5' },
      );
      expect([data ?? null, errors.length > 0]).toEqual([null, true]);
      const messages = errors.map(({ message }) => message).join('\n');
      expect(messages).not.toMatch(/did you mean/i);
      expect(messages).not.toContain(secret);
    });
  });
});
