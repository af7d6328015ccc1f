import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of documents: what is refused before any resolver is asked. Each comes three times, as it is compiled then. */

const store = storeForAll();

describe('a document', () => {
  test.each([
    ['{ pets {', 'GRAPHQL_PARSE_FAILED', 'Syntax Error: Expected Name, found <EOF>.'],
    ['{ pets(after: "\\ud800") { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Invalid Unicode escape/],
    ['{ nothing }', 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field "nothing" on type "Query".'],
    ['{ pets(limit: "5") { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Int cannot represent non-integer value: "5"'],
    [
      '{ pets(status: Sold) { id } }',
      'GRAPHQL_VALIDATION_FAILED',
      /^Value "Sold" does not exist in "PetStatus" enum\. Did you mean the enum value "sold"\?$/,
    ],
    [
      '{ pets(after: 1.5) { id } }',
      'GRAPHQL_VALIDATION_FAILED',
      /^ID cannot represent value: .+\. It must be a string, or an integer in plain digits\.$/,
    ],
    // What scanners of GraphQL services try (graphql-cop, InQL, Damn Vulnerable GraphQL Application).
    ['{ pets\u0000 { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets\ud800 }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets(after: "\\u0000") { id } }', 'BAD_USER_INPUT', /^after must be/],
    ['{ _service { sdl } }', 'GRAPHQL_VALIDATION_FAILED', /^Cannot query field "_service"/],
    ['subscription { pets { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field "pets" on type "Subscription".'],
  ])('%s is refused with %s', async (query, code, message) => {
    const told = message instanceof RegExp ? expect.stringMatching(message) : message;
    const { data, errors } = await graphqlThrice(store, { query });
    expect(errors?.[0]).toMatchObject({ message: told, extensions: { code, status: 400 } });
    expect(data ?? null).toBeNull();
  });

  test('that subscribes is refused like any other that is not valid: without data', async () => {
    const errors = [
      {
        message: 'Cannot query field "pets" on type "Subscription".',
        locations: [{ line: 1, column: 41 }],
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED', status: 400 },
      },
    ];
    const body = { query: 'query A { pets { id }} subscription B { pets { id } }', operationName: 'B' };
    const accept = 'application/graphql-response+json';
    const answer = await graphqlText(store, body, store.key, { accept });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([422, { errors }]);
  });

  test('of endless depth or length is refused before it costs anything', async () => {
    for (const query of ['{a'.repeat(50_000), `{pets(limit:${'['.repeat(50_000)}`, '{a}'.repeat(50_000)]) {
      const { errors } = await graphqlText(store, { query });
      const message = expect.stringMatching(/^Syntax Error: Document contains more tha[nt] \d+ tokens/);
      expect(errors).toMatchObject([{ message, extensions: { code: 'TOO_MANY_TOKENS', status: 400 } }]);
    }
  });
});

test.each([
  ['then, which would make a promise of it', '{ then: __typename pets { then: id catch: name } }'],
  ['names of every object', '{ hasOwnProperty: __typename pets { valueOf: id toString: name constructor: id } }'],
])('the alias %s is a name like any other', async (_what, query) => {
  expect((await graphqlThrice(store, { query })).errors).toBeUndefined();
});

describe('nothing leaks from within:', () => {
  const internals =
    /node_modules|\bat .+\(|\.[jt]s:\d|stacktrace|"exception"|"tracing"|"cacheControl"|postgres|mikro|select |insert |syntax error at/i;
  test.each<[string, unknown, Record<string, string>]>([
    ['tracing', { query: '{ __typename }' }, { 'apollo-federation-include-trace': 'ftv1' }],
    ['a refused value', { query: '{ pets(after: "x") { id } }' }, {}],
    ['a refused variable', { query: 'query ($s: PetStatus) { pets(status: $s) { id } }', variables: { s: {} } }, {}],
    ['extensions', { query: '{ __typename }', extensions: { debug: true, tracing: true } }, {}],
  ])('%s', async (_what, body, headers) => {
    const { text, headers: answered } = await graphqlText(store, body, store.key, headers);
    expect(text).not.toMatch(internals);
    expect(JSON.parse(text)).not.toHaveProperty('extensions');
    expect(answered).not.toHaveProperty('x-powered-by');
    expect(answered).not.toHaveProperty('server');
  });
});
