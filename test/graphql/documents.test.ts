import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** The edge table of documents: what is refused before any resolver is asked. Each comes three times, as it is compiled then. */

const store = storeForAll();

describe('a document', () => {
  test.each([
    ['{ pets {', 'GRAPHQL_PARSE_FAILED', 'Syntax Error: Expected Name, found <EOF>.'],
    ['{ pets(limit: 05) { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Invalid number/],
    ['{ pets(after: "\\ud800") { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Invalid Unicode escape/],
    ['{ nothing }', 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field "nothing" on type "Query".'],
    ['{ pets { id name nothing } }', 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field "nothing" on type "Pet".'],
    ['{ pets(page: 1) { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Unknown argument "page" on field "Query.pets".'],
    [
      '{ pets(limit: 1, limit: 2) { id } }',
      'GRAPHQL_VALIDATION_FAILED',
      'There can be only one argument named "limit".',
    ],
    ['{ pets(limit: "5") { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Int cannot represent non-integer value: "5"'],
    ['{ pets(limit: 1.0) { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Int cannot represent non-integer value: 1.0'],
    [
      '{ pets(status: "sold") { id } }',
      'GRAPHQL_VALIDATION_FAILED',
      /^Enum "PetStatus" cannot represent non-enum value/,
    ],
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
    ['{ pets }', 'GRAPHQL_VALIDATION_FAILED', /must have a selection of subfields/],
    ['query ($a: Nothing) { pets { id } }', 'GRAPHQL_VALIDATION_FAILED', /^Unknown type "Nothing"/],
    ['fragment A on Pet { id }', 'GRAPHQL_VALIDATION_FAILED', 'Fragment "A" is never used.'],
    // What scanners of GraphQL services try (graphql-cop, InQL, Damn Vulnerable GraphQL Application).
    ['{ pets\u0000 { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets { id } } \u{1f415}', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets\ud800 }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ p\u0435ts { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['\uff5b pets { id } \uff5d', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets(after: "\\u{110000}") { id } }', 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['{ pets(after: "\\u0000") { id } }', 'BAD_USER_INPUT', /^after must be/],
    ['{ pets(limit: 99999999999) { id } }', 'GRAPHQL_VALIDATION_FAILED', /^Int cannot represent non 32-bit/],
    ['mutation { deletePet(id: 1) { id } }', 'GRAPHQL_VALIDATION_FAILED', /^Cannot query field "deletePet"/],
    ['{ _service { sdl } }', 'GRAPHQL_VALIDATION_FAILED', /^Cannot query field "_service"/],
    ['subscription { pets { id } }', 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field "pets" on type "Subscription".'],
  ])('%s is refused with %s', async (query, code, message) => {
    const told = message instanceof RegExp ? expect.stringMatching(message) : message;
    for (let time = 1; time <= 3; time += 1) {
      const { data, errors } = await graphqlText(store, { query });
      expect(errors?.[0]).toMatchObject({ message: told, extensions: { code, status: 400 } });
      expect(data ?? null).toBeNull();
    }
  });

  test('that subscribes is refused like any other that is not valid: without data', async () => {
    const errors = [
      {
        message: 'Cannot query field "pets" on type "Subscription".',
        locations: [{ line: 1, column: 41 }],
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED', status: 400 },
      },
    ];
    const body = JSON.stringify({ query: 'query A { pets { id }} subscription B { pets { id } }', operationName: 'B' });
    for (const [accept, status] of [
      ['application/graphql-response+json', 422],
      ['application/json', 200],
    ] as const) {
      const headers = { authorization: `Bearer ${store.key}`, 'content-type': 'application/json', accept };
      const answer = await send(store.origin, { method: 'POST', path: '/graphql', headers, body });
      expect([answer.status, JSON.parse(answer.text)]).toEqual([status, { errors }]);
      expect(answer.headers['content-type']).toBe(`${accept}; charset=utf-8`);
    }
  });

  test('of endless depth or length is refused before it costs anything', async () => {
    for (const query of ['{a'.repeat(50_000), `{pets(limit:${'['.repeat(50_000)}`, '{a}'.repeat(50_000)]) {
      const { errors } = await graphqlText(store, { query });
      const message = expect.stringMatching(/^Syntax Error: Document contains more tha[nt] \d+ tokens/);
      expect(errors).toMatchObject([{ message, extensions: { code: 'TOO_MANY_TOKENS', status: 400 } }]);
    }
  });

  test('may ask for the schema', async () => {
    const { data } = await graphqlText(store, { query: '{ __schema { queryType { name } mutationType { name } } }' });
    expect(data).toEqual({ __schema: { queryType: { name: 'Query' }, mutationType: { name: 'Mutation' } } });
  });
});

test.each([
  ['then, which would make a promise of it', '{ then: __typename pets { then: id catch: name } }'],
  ['toJSON', '{ toJSON: __typename pets { toJSON: id } }'],
  ['names of every object', '{ hasOwnProperty: __typename pets { valueOf: id toString: name constructor: id } }'],
])('the alias %s is a name like any other', async (_what, query) => {
  const seen = new Set<string>();
  for (let time = 0; time < 3; time += 1) seen.add((await graphqlText(store, { query })).text);
  expect(seen.size).toBe(1);
  expect([...seen][0]).not.toContain('errors');
});

describe('nothing leaks from within:', () => {
  const internals =
    /node_modules|\bat .+\(|\.[jt]s:\d|stacktrace|"exception"|"tracing"|"cacheControl"|postgres|mikro|select |insert |syntax error at/i;
  test.each<[string, unknown, Record<string, string>]>([
    ['tracing', { query: '{ __typename }' }, { 'apollo-federation-include-trace': 'ftv1' }],
    ['Apollo tracing', { query: '{ __typename }' }, { 'x-apollo-tracing': '1' }],
    ['debug', { query: '{ nothing }' }, { 'x-debug': '1', 'x-graphql-debug': 'true' }],
    ['a refused document', { query: '{' }, {}],
    ['a refused value', { query: '{ pets(after: "x") { id } }' }, {}],
    ['a refused variable', { query: 'query ($s: PetStatus) { pets(status: $s) { id } }', variables: { s: {} } }, {}],
    ['a body that is none', 'x', {}],
    ['extensions', { query: '{ __typename }', extensions: { debug: true, tracing: true } }, {}],
  ])('%s', async (_what, body, headers) => {
    const { text, headers: answered } = await send(store.origin, {
      method: 'POST',
      path: '/graphql',
      headers: { authorization: `Bearer ${store.key}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    expect(text).not.toMatch(internals);
    expect(JSON.parse(text)).not.toHaveProperty('extensions');
    expect(answered).not.toHaveProperty('x-powered-by');
    expect(answered).not.toHaveProperty('server');
  });
});
