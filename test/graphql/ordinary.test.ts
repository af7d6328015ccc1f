import { hash } from 'node:crypto';
import { stock } from '../support/database-access.ts';
import { send } from '../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, startNode } from '../support/nodes.ts';
import { storeForAll } from '../support/store.ts';

/** Ordinary requests skip Apollo Server's part for HTTP: they are answered as if they had passed it. */
const store = storeForAll({}, () => stock(store.database, 30));

const list = '{ pets(limit: 2) { id name } }';
const find = 'query Find($id: ID!) { pet(id: $id) { id } }';
const create = 'mutation { createPet(input: { name: "", categoryId: "x" }) { id } }';

const bodies: Array<[string, unknown]> = [
  ['a list', { query: list }],
  ['nulls', { query: list, variables: null, operationName: null, extensions: null }],
  ['what a client says of itself', { query: list, extensions: { clientLibrary: { name: 'a', version: '1' } } }],
  ['no persisted query', { query: list, extensions: { persistedQuery: null } }],
  ['a persisted query', { query: list, extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } }],
  ['only a hash', { extensions: { persistedQuery: { version: 1, sha256Hash: list } } }],
  ['a text for a hash', { query: list, extensions: { persistedQuery: { version: 1, sha256Hash: list } } }],
  ['variables', { query: find, variables: { id: '3' } }],
  ['an operation by its name', { query: `${find} query All ${list}`, operationName: 'All' }],
  ['an operation by no name', { query: `${find} query All ${list}`, operationName: '' }],
  ['an unknown operation', { query: list, operationName: 'Nobody' }],
  ['wrong variables', { query: find, variables: { id: [] } }],
  ['missing variables', { query: find }],
  ['variables as a list', { query: find, variables: ['3'] }],
  ['variables as a text', { query: find, variables: '{"id":"3"}' }],
  ['a number for a name', { query: list, operationName: 5 }],
  ['a text for extensions', { query: list, extensions: 'none' }],
  ['a list for extensions', { query: list, extensions: [] }],
  ['a text that is none', { query: '{ pets {' }],
  ['a field that is none', { query: '{ cats }' }],
  ['no text', { query: '' }],
  ['a number for a text', { query: 5 }],
  ['nothing', {}],
  ['a batch', [{ query: list }]],
  ['null', null],
  ['a limit that is none', { query: '{ pets(limit: 0) { id } }' }],
  ['a mutation that is refused', { query: create }],
  [
    'two fields, one of which is refused',
    { query: '{ a: pets(limit: 1) { id } pet(id: "3") { id name } b: pets(limit: 0) { id } }' },
  ],
  [
    'what costs too much',
    { query: `{ ${Array.from({ length: 15 }, (_, at) => `a${at}: pets(limit: 100) { id }`).join(' ')} }` },
  ],
  ['introspection', { query: '{ __schema { queryType { name } } }' }],
  ['a subscription', { query: 'subscription { pets { id } }' }],
];

test('a hash in the place of a text is a text, whatever was asked before', async () => {
  const ask = (query: string, accept: string) =>
    send(store.origin, {
      method: 'POST',
      path: '/graphql',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${store.key}`, accept },
      body: JSON.stringify({ query }),
    });
  for (const accept of ['application/json;q=1', 'application/json']) {
    expect((await ask(list, accept)).status).toBe(200);
    for (const text of [hash('sha256', list), `text:${list}`, `apq:${list}`]) {
      expect((await ask(text, 'application/json')).text).toContain('GRAPHQL_PARSE_FAILED');
    }
  }
});

describe.each<[string, Record<string, string>]>([
  ['as configured', {}],
  ['with persisted queries', { GRAPHQL_APQ: 'true' }],
  ['interpreted', { GRAPHQL_JIT: 'false' }],
  ['with a closed schema', { GRAPHQL_INTROSPECTION: 'false' }],
  ['with a quota', { QUOTA_PER_MINUTE: '1000000' }],
])('%s', (_how, env) => {
  let node: ServiceNode;
  beforeAll(async () => {
    node = await startNode(store, env);
  });
  afterAll(() => node.close());

  async function answer(body: unknown, accept: string) {
    const { status, headers, text } = await send(node.origin, {
      method: 'POST',
      path: '/graphql',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${node.key}`, accept },
      body: JSON.stringify(body),
    });
    const { date: _date, 'x-request-id': _id, ratelimit: _left, ...rest } = headers;
    return { status, text, headers: rest };
  }

  test.each(bodies)('%s', async (_what, body) => {
    // The second time it is compiled, the third time from the cache.
    for (let time = 1; time <= 3; time += 1) {
      // The same types, put in a way that only Apollo Server reads.
      expect(await answer(body, 'application/json')).toEqual(await answer(body, 'application/json;q=1'));
    }
  });
});
