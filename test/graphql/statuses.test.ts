import { hash } from 'node:crypto';
import { request } from 'node:http';
import { type HttpRequest, send } from '../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode, startNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The table of docs/graphql.md: every outcome with every kind of `Accept`, by GraphQL over HTTP of September 2026. */

const store = storeForAll();
const nodes = {} as Record<'apq' | 'strict', ServiceNode>;
beforeAll(async () => {
  nodes.apq = await startNode(store, { GRAPHQL_APQ: 'true' });
  nodes.strict = await startNode(store, { GRAPHQL_MAX_ALIASES: '0', GRAPHQL_MAX_COST: '10' });
});
afterAll(() => Promise.all(Object.values(nodes).map((node) => node.close())));

const json = 'application/json';
const response = 'application/graphql-response+json';

/** Of the error; its words are the business of other tests. */
type Told = [code: string, place?: object];
interface Case {
  what: string;
  /** The status where the body is certainly GraphQL's, and where it is plain JSON. */
  is: [response: number, json: number];
  ask: Omit<HttpRequest, 'path'> & { path?: string };
  data?: unknown;
  told?: Told;
  status?: number;
  of?: keyof typeof nodes;
}

const post = (body: unknown, type = json) => ({
  method: 'POST',
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const get = (parameters: Record<string, string>) => ({ path: `/graphql?${new URLSearchParams(parameters)}` });
const at = (line: number, column: number) => ({ locations: [{ line, column }] });
const find = 'query Find($id: ID!) { pet(id: $id) { id } }';
const sha256Hash = hash('sha256', '{ __typename }');

const cases: Case[] = [
  { what: 'data', is: [200, 200], ask: post({ query: '{ pets { id } }' }), data: { pets: [] } },
  { what: 'data by GET', is: [200, 200], ask: get({ query: '{ pets { id } }' }), data: { pets: [] } },
  {
    what: 'an error, and no data for it',
    is: [294, 200],
    ask: post({ query: '{ pets(limit: 0) { id } }' }),
    data: null,
    told: ['BAD_USER_INPUT', { ...at(1, 3), path: ['pets'] }],
  },
  {
    what: 'a mutation that is refused',
    is: [294, 200],
    ask: post({ query: 'mutation { createPet(input: { name: "", categoryId: "x" }) { id } }' }),
    data: null,
    told: ['BAD_USER_INPUT', { ...at(1, 12), path: ['createPet'] }],
  },
  {
    what: 'a text that is no document',
    is: [400, 200],
    ask: post({ query: '{' }),
    told: ['GRAPHQL_PARSE_FAILED', at(1, 2)],
  },
  {
    what: 'a field that is none',
    is: [422, 200],
    ask: post({ query: '{ nothing }' }),
    told: ['GRAPHQL_VALIDATION_FAILED', at(1, 3)],
  },
  {
    what: 'the same by GET',
    is: [422, 200],
    ask: get({ query: '{ nothing }' }),
    told: ['GRAPHQL_VALIDATION_FAILED', at(1, 3)],
  },
  {
    what: 'a limit of operations',
    is: [422, 200],
    ask: post({ query: '{ a: __typename }' }),
    told: ['TOO_MANY_ALIASES', at(1, 1)],
    of: 'strict',
  },
  {
    what: 'the cost of an operation',
    is: [422, 200],
    ask: post({ query: '{ pets(limit: 100) { id } }' }),
    told: ['QUERY_TOO_COSTLY', at(1, 1)],
    of: 'strict',
  },
  {
    what: 'more tokens than a document may have',
    is: [400, 200],
    ask: post({ query: `{ ${'a '.repeat(1000)}}` }),
    told: ['TOO_MANY_TOKENS', { locations: expect.anything() }],
  },
  {
    what: 'an operation that is not there',
    is: [422, 200],
    ask: post({ query: '{ __typename }', operationName: 'B' }),
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'a variable of another type',
    is: [422, 200],
    ask: post({ query: find, variables: { id: [] } }),
    told: ['BAD_USER_INPUT', at(1, 12)],
  },
  {
    what: 'a variable that is missing',
    is: [422, 200],
    ask: post({ query: find }),
    told: ['BAD_USER_INPUT', at(1, 12)],
  },
  { what: 'no query', is: [422, 400], ask: post({ variables: {} }), told: ['BAD_USER_INPUT'] },
  {
    what: 'variables that are a list',
    is: [422, 400],
    ask: post({ query: '{ __typename }', variables: [7] }),
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'a batch',
    is: [422, 400],
    ask: post([{ query: '{ __typename }' }]),
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'a parameter twice',
    is: [422, 400],
    ask: { path: '/graphql?query={__typename}&query={__typename}' },
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'a documentId, where none is registered',
    is: [422, 400],
    ask: post({ documentId: `sha256:${sha256Hash}` }),
    told: ['PERSISTED_QUERY_NOT_SUPPORTED'],
  },
  {
    what: 'the same by GET, with automatic persisted queries',
    is: [422, 400],
    ask: get({ documentId: `sha256:${sha256Hash}`, variables: '{}' }),
    told: ['PERSISTED_QUERY_NOT_SUPPORTED'],
    of: 'apq',
  },
  {
    what: 'a documentId beside its text',
    is: [200, 200],
    ask: post({ query: '{ __typename }', documentId: 'sha256:0' }),
    data: { __typename: 'Query' },
  },
  {
    what: 'a persisted query',
    is: [422, 200],
    ask: post({ extensions: { persistedQuery: { version: 1, sha256Hash } } }),
    told: ['PERSISTED_QUERY_NOT_SUPPORTED'],
  },
  {
    what: 'a persisted query that nobody knows',
    is: [422, 200],
    ask: post({ extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } }),
    told: ['PERSISTED_QUERY_NOT_FOUND'],
    of: 'apq',
  },
  {
    what: 'a mutation by GET',
    is: [405, 405],
    ask: get({ query: 'mutation { createPet(input: { name: "x", categoryId: 1 }) { id } }' }),
    told: ['METHOD_NOT_ALLOWED'],
    status: 405,
  },
  {
    what: 'a body that is no JSON',
    is: [400, 400],
    ask: post('{"query":'),
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'variables that are no JSON',
    is: [400, 400],
    ask: get({ query: '{ __typename }', variables: '{' }),
    told: ['BAD_USER_INPUT'],
  },
  {
    what: 'a form',
    is: [415, 415],
    ask: post('query={__typename}', 'application/x-www-form-urlencoded'),
    told: ['UNSUPPORTED_MEDIA_TYPE'],
    status: 415,
  },
  {
    what: 'a key that is none',
    is: [401, 401],
    ask: { ...post({ query: '{ __typename }' }), headers: { 'content-type': json, authorization: 'Bearer no' } },
    told: ['UNAUTHENTICATED'],
    status: 401,
  },
];

describe.each<[string | undefined, string]>([
  [undefined, json],
  ['*/*', json],
  [json, json],
  // The same, in words that Apollo Server's part for HTTP reads.
  ['application/json;q=1', json],
  [`${json}, ${response};q=0.5`, json],
  [response, response],
  // What Apollo Client, graphql-request and urql send, and what the specification advises.
  [`${response},${json};q=0.9`, response],
  [`${response}, application/graphql+json, ${json}, text/event-stream`, response],
])('to Accept: %s', (accept, type) => {
  test.each(cases)('$what', async ({ is, ask, data, told, status = 400, of }) => {
    const { origin } = of ? nodes[of] : store;
    const headers = { authorization: `Bearer ${store.key}`, ...(accept && { accept }), ...ask.headers };
    const [code, place] = told ?? [];
    const error = { message: expect.any(String), ...place, extensions: { code, status } };
    // Interpreted, compiled, and from the cache.
    for (let time = 1; time <= 3; time += 1) {
      const answer = await send(origin, { path: '/graphql', ...ask, headers });
      expect([answer.status, answer.headers['content-type']]).toEqual([
        type === response ? is[0] : is[1],
        `${type}; charset=utf-8`,
      ]);
      expect(JSON.parse(answer.text)).toEqual({
        ...(told && { errors: [error] }),
        ...(data !== undefined && { data }),
      });
    }
  });
});

test('who accepts neither gets 406, and nothing has happened', async () => {
  const query = 'mutation { createPet(input: { name: "x", categoryId: 1 }) { id } }';
  const { status, headers, text } = await send(store.origin, {
    ...post({ query }),
    path: '/graphql',
    headers: { authorization: `Bearer ${store.key}`, 'content-type': json, accept: 'image/png' },
  });
  const message = '`Accept` must name application/graphql-response+json or application/json, or text/event-stream.';
  expect([status, headers['content-type'], JSON.parse(text)]).toEqual([
    406,
    `${json}; charset=utf-8`,
    { errors: [{ message, extensions: { code: 'NOT_ACCEPTABLE', status: 406 } }] },
  ]);
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});

test('what a quota leaves of an operation is data: 294, or 429 where the type does not say so', async () => {
  // Each of the two costs one, and one a minute is all there is.
  const body = { query: '{ a: pet(id: 1) { id } b: pet(id: 2) { id } }' };
  for (const [accept, status] of [
    [response, 294],
    [json, 429],
  ] as const) {
    const node = await startNode(store, { QUOTA_PER_MINUTE: '1' });
    try {
      const headers = { authorization: `Bearer ${store.key}`, 'content-type': json, accept };
      const answer = await send(node.origin, { ...post(body), path: '/graphql', headers });
      expect(answer.status).toBe(status);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(JSON.parse(answer.text)).toMatchObject({
        data: { a: null, b: null },
        errors: [{ path: ['b'], extensions: { code: 'TOO_MANY_REQUESTS', status: 429 } }],
      });
    } finally {
      await node.close();
    }
  }
});

test('294 has words of its own, and what a quota makes of it has the usual ones', async () => {
  const wordsOf = (origin: string, query: string) =>
    new Promise((done, fail) => {
      const headers = { authorization: `Bearer ${store.key}`, accept: response };
      request(`${origin}/graphql?query=${query}`, { headers }, (incoming) => {
        incoming.resume();
        done([incoming.statusCode, incoming.statusMessage]);
      })
        .on('error', fail)
        .end();
    });
  expect(await wordsOf(store.origin, '{pets(limit:0){id}}')).toEqual([294, 'Partial Success']);
  await onNode(store, { QUOTA_PER_MINUTE: '1' }, async (node) => {
    // The second of the two is over the quota.
    const both = '{a:pet(id:1){id}b:pet(id:2){id}}';
    expect(await wordsOf(node.origin, both)).toEqual([294, 'Partial Success']);
    expect(await wordsOf(node.origin, '{pets{id}}')).toEqual([429, 'Too Many Requests']);
  });
});
