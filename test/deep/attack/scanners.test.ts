import { stock } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { type Store, startStore } from '../../support/store.ts';

/** What scanners of GraphQL services try (graphql-cop, InQL, Damn Vulnerable GraphQL Application), and what must happen. */
let store: Store;
beforeAll(async () => {
  store = await startStore();
  await stock(store.database, 3);
});
afterEach(async () => {
  expect(await graphqlText(store, { query: '{ __typename }' })).toMatchObject({ status: 200 });
});
afterAll(() => store.close());

const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');

describe.each([
  ['with a key', () => store.key],
  ['without one', () => null],
])('%s', (_who, keyOf) => {
  test.each<[string, string, string]>([
    ['alias overloading', `{ ${times(101, (at) => `alias${at}: __typename`)} }`, 'TOO_MANY_ALIASES'],
    ['alias overloading on a list', `{ ${times(51, (at) => `a${at}: pets(limit: 1) { id }`)} }`, 'TOO_MANY_ALIASES'],
    [
      '300 aliases, which other services let pass',
      `{ ${times(300, (at) => `a${at}:__typename`)} }`,
      'TOO_MANY_ALIASES',
    ],
    ['field duplication', `{ ${times(500, () => '__typename')} }`, 'TOO_MANY_ROOT_FIELDS'],
    ['field duplication beyond the tokens', `{ pets { ${times(2000, () => 'id')} } }`, 'TOO_MANY_TOKENS'],
    ['directive overloading', `{ __typename ${times(100, () => '@include(if: true)')} }`, 'TOO_MANY_DIRECTIVES'],
    ['unknown directives', `{ __typename ${times(55, () => '@aa')} }`, 'TOO_MANY_DIRECTIVES'],
    [
      'circular introspection',
      `{ __schema { types { ${'fields { type { '.repeat(10)}name${' } }'.repeat(10)} } } }`,
      'QUERY_TOO_DEEP',
    ],
    [
      'a circular fragment',
      '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    ['deep nesting', `{ ${'pets { '.repeat(300)}id${' }'.repeat(300)} }`, 'QUERY_TOO_DEEP'],
    ['a huge limit', '{ pets(limit: 100000) { id } }', 'BAD_USER_INPUT'],
    ['a limit beyond 32 bits', '{ pets(limit: 99999999999) { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a negative limit', '{ pets(limit: -1) { id } }', 'BAD_USER_INPUT'],
    [
      'many huge lists',
      `{ ${times(50, (at) => `a${at}: pets(limit: 1000) { id }`)} pets { id } }`,
      'TOO_MANY_ROOT_FIELDS',
    ],
    ['a subscription', 'subscription { pets { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['field stuffing', '{ pets { password token secret admin } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a hidden mutation', 'mutation { deletePet(id: 1) { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['system queries', '{ systemUpdate systemHealth systemDiagnostics(cmd: "id") }', 'GRAPHQL_VALIDATION_FAILED'],
    ['federation', '{ _service { sdl } _entities(representations: []) { __typename } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a null byte', '{ pets\u0000 { id } }', 'GRAPHQL_PARSE_FAILED'],
    ['an unknown character', '{ pets { id } } \u{1f415}', 'GRAPHQL_PARSE_FAILED'],
    ['an unfinished document', '{ pets {', 'GRAPHQL_PARSE_FAILED'],
    ['a lone surrogate in a name', '{ pets\ud800 }', 'GRAPHQL_PARSE_FAILED'],
    ['a homoglyph', '{ p\u0435ts { id } }', 'GRAPHQL_PARSE_FAILED'],
    ['a full-width brace', '\uff5b pets { id } \uff5d', 'GRAPHQL_PARSE_FAILED'],
    ['an escape that is none', '{ pets(after: "\\u{110000}") { id } }', 'GRAPHQL_PARSE_FAILED'],
    ['an escaped null byte', '{ pets(after: "\\u0000") { id } }', 'BAD_USER_INPUT'],
    ['Arabic digits', '{ pets(after: "\u0661") { id } }', 'BAD_USER_INPUT'],
    ['a number with an exponent', '{ pets(after: "1e3") { id } }', 'BAD_USER_INPUT'],
    ['a hexadecimal number', '{ pets(after: "0x10") { id } }', 'BAD_USER_INPUT'],
    ['an octal number', '{ pets(after: "010") { id } }', 'BAD_USER_INPUT'],
    ['a number with blanks', '{ pets(after: " 1") { id } }', 'BAD_USER_INPUT'],
    ['a fraction for an integer', '{ pets(limit: 1.0) { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a number in quotes', '{ pets(limit: "1") { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  ])('%s', async (_attack, query, code) => {
    const key = keyOf();
    for (let time = 0; time < 2; time += 1) {
      const { status, errors, data } = await graphqlText(store, { query }, key);
      expect(data ?? null).toBeNull();
      const first = errors?.[0]?.extensions.code;
      expect({ status, first }).toEqual(
        key === null ? { status: 401, first: 'UNAUTHENTICATED' } : { status: 200, first: code },
      );
    }
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

test.each([
  '/graphiql.html',
  '/playground',
  '/altair',
  '/voyager',
  '/console',
  '/graphql/console',
  '/graphql/schema.graphql',
  '/v1/graphql',
  '/.env',
  '/.git/config',
  '/metrics',
  '/debug',
  '/server-status',
  '/swagger',
  '/admin',
])('%s is not there, for whoever has a key, and 401 for others', async (path) => {
  const headers = { authorization: `Bearer ${store.key}`, accept: 'text/html' };
  expect((await send(store.origin, { path, headers })).status).toBe(404);
  expect((await send(store.origin, { path, headers: { accept: 'text/html' } })).status).toBe(401);
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
