import { hash } from 'node:crypto';
import { graphqlText } from '../support/graphql.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/** The edge table of GraphQL over HTTP: what a request may be, before any resolver is asked. */

const store = storeForAll();
beforeEach(() => store.empty());

interface Answer extends HttpResponse {
  json: any;
}
type Headers = Record<string, string>;

async function ask(method: string, path: string, headers: Headers = {}, body?: string): Promise<Answer> {
  const authorization = `Bearer ${store.key}`;
  const accept = 'application/graphql-response+json';
  const response = await send(store.origin, { method, path, body, headers: { authorization, accept, ...headers } });
  return { ...response, json: response.text && JSON.parse(response.text) };
}
const post = (body: string, headers: Headers = {}) =>
  ask('POST', '/graphql', { 'content-type': 'application/json', ...headers }, body);
const get = (parameters: Headers, headers: Headers = {}) =>
  ask('GET', `/graphql?${new URLSearchParams(parameters)}`, headers);
const refused = (message: unknown, code = 'BAD_USER_INPUT') => ({
  errors: [{ message, extensions: { code, status: 400 } }],
});
const onlyQueries =
  'By GET only queries are answered: send a mutation by POST, and a subscription with an `Accept` that names a stream.';
const addRex = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

describe('a body', () => {
  const noBody = 'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.';
  const noQuery = 'There is no `query`: it must be the text of an operation.';
  const noBatch = 'The body must be one operation, a JSON object: a list of them is not accepted.';
  const noString = '`query` must be a string.';
  test.each([
    ['{', /^The body is not acceptable JSON: Expected property name/],
    ['', noBody],
    ['null', noBody],
    ['{}', noQuery],
    [`[{"query":${JSON.stringify(addRex)}}]`, noBatch],
    ['{"query":null}', noQuery],
    ['{"query":9007199254740993}', noString],
    ['{"query":{}}', noString],
    ['{"query":"{__typename}","variables":[]}', '`variables` must be an object.'],
    ['{"query":"{__typename}","variables":9007199254740993}', '`variables` must be an object.'],
    ['{"query":"{__typename}","extensions":[]}', '`extensions` must be an object.'],
    ['{"query":"{__typename}","operationName":5}', '`operationName` must be a string.'],
    ['{"query":"query A{__typename}","operationName":"B"}', 'Unknown operation named "B".'],
    [
      '{"query":"query A{__typename} query B{__typename}"}',
      'Must provide operation name if query contains multiple operations.',
    ],
  ])('%s is refused', async (body, message) => {
    const told = typeof message === 'string' ? message : expect.stringMatching(message);
    // Not JSON at all, or none of GraphQL over HTTP.
    const status = typeof message !== 'string' && message.source.startsWith('^The body') ? 400 : 422;
    for (let time = 1; time <= 3; time += 1) {
      expect(await post(body)).toMatchObject({ status, json: refused(told) });
    }
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });

  test.each([
    '{"query":"{__typename}"}',
    '\ufeff{"query":"{__typename}"}',
    '{"query":"{__typename}","variables":null,"extensions":null,"operationName":null}',
    '{"query":"query A{nothing} ","query":"{__typename}"}',
    '{"query":"query A{__typename} query B{pets{id}}","operationName":"A"}',
    '{"query":"{__typename}","__proto__":{"query":"{nothing}"},"constructor":{"prototype":{}}}',
  ])('%s is answered', async (body) => {
    for (let time = 1; time <= 3; time += 1) {
      expect(await post(body)).toMatchObject({ status: 200, json: { data: { __typename: 'Query' } } });
    }
  });
});

describe('by GET', () => {
  test('a query is answered, with variables and a name', async () => {
    const query = 'query A($limit: Int) { pets(limit: $limit) { id } } query B { __typename }';
    const parameters = { query, variables: '{"limit":5}', operationName: 'A', extensions: '{}' };
    expect(await get(parameters)).toMatchObject({ status: 200, json: { data: { pets: [] } } });
  });

  test.each(['variables', 'extensions', 'operationName', 'documentId'])(
    'an empty %s is an absent one',
    async (name) => {
      for (const accept of ['application/graphql-response+json', 'text/event-stream']) {
        const { status, text } = await send(store.origin, {
          path: `/graphql?${new URLSearchParams({ query: '{__typename}', [name]: '' })}`,
          headers: { authorization: `Bearer ${store.key}`, accept },
        });
        expect([status, text]).toEqual([200, expect.stringContaining('{"data":{"__typename":"Query"}}')]);
      }
    },
  );

  test('a mutation is not allowed, and not run', async () => {
    const second = { query: `query A{__typename} ${addRex}`.replace('n {', 'n B {'), operationName: 'B' };
    for (const parameters of [{ query: addRex }, second]) {
      const { status, headers, json } = await get(parameters as Headers);
      const errors = [{ message: onlyQueries, extensions: { code: 'METHOD_NOT_ALLOWED', status: 405 } }];
      expect([status, headers.allow, json]).toEqual([405, 'GET, HEAD, OPTIONS, POST', { errors }]);
    }
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });

  test('a request that a foreign page could make is refused: it has no Authorization', async () => {
    const path = `/graphql?${new URLSearchParams({ query: '{__typename}' })}`;
    const message = 'An API key is required: Authorization: Bearer <API_KEY>.';
    const errors = [{ message, extensions: { code: 'UNAUTHENTICATED', status: 401 } }];
    for (const headers of [
      {},
      { 'content-type': 'text/plain; charset=application/json' },
      { 'apollo-require-preflight': 'true' },
      { cookie: `authorization=Bearer ${store.key}` },
    ] as Headers[]) {
      const { status, text } = await send(store.origin, { path, headers });
      expect([status, JSON.parse(text)]).toEqual([401, { errors }]);
    }
  });

  test('a content type other than that of JSON is refused, since there is nothing of that type', async () => {
    const message = 'A GET request must have no Content-Type other than application/json.';
    const errors = [{ message, extensions: { code: 'UNSUPPORTED_MEDIA_TYPE', status: 415 } }];
    for (const type of ['text/plain; charset=application/json', 'multipart/form-data; boundary=x', 'json']) {
      const { status, json } = await get({ query: '{__typename}' }, { 'content-type': type });
      expect([status, json]).toEqual([415, { errors }]);
    }
    expect((await get({ query: '{__typename}' }, { 'content-type': 'application/json' })).status).toBe(200);
  });

  test.each([
    ['', 'There is no `query`: it must be the text of an operation.'],
    ['query={__typename}&query={__typename}', '`query` must be a string.'],
    ['query={__typename}&variables={', expect.stringMatching(/variables .*JSON/)],
    ['query={__typename}&variables=[]', '`variables` must be an object.'],
  ])('?%s is refused', async (search, message) => {
    const answer = await ask('GET', `/graphql?${search}`);
    const status = search.endsWith('variables={') ? 400 : 422;
    expect(answer).toMatchObject({ status, json: refused(message) });
  });
});

describe('a browser', () => {
  const page = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const visit = (path: string, headers: Headers, method = 'GET') =>
    send(store.origin, { method, path, headers: { accept: page, ...headers } });

  test('gets the explorer without a key, and nothing is executed', async () => {
    for (const path of ['/graphql', at({ query: addRex })]) {
      const { status, headers, text } = await visit(path, { 'apollo-require-preflight': '1' });
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      expect(text).toMatch(/^\s*<!DOCTYPE html>/);
      expect(text).not.toContain('"data"');
    }
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });

  test('that brings a wrong key, or posts, is refused', async () => {
    expect((await visit('/graphql', { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await visit('/graphql', {}, 'POST')).status).toBe(401);
    expect((await visit('/graphql', { accept: 'application/json, text/html' })).status).toBe(401);
  });
});

test('other methods are not allowed', async () => {
  const { status, headers, json } = await ask('PUT', '/graphql');
  const message = 'PUT is not possible here. Allowed: GET, HEAD, OPTIONS, POST.';
  const errors = [{ message, extensions: { code: 'METHOD_NOT_ALLOWED', status: 405 } }];
  expect([status, headers.allow, json]).toEqual([405, 'GET, HEAD, OPTIONS, POST', { errors }]);
});

test.each<[number, string, string]>([
  [401, 'OPTIONS', '/graphql'],
  [401, 'GET', '/graphql/nothing'],
  [404, 'GET', '/graphql/nothing'],
])('%i to %s %s is a GraphQL response, of the media type that the client prefers', async (status, method, path) => {
  const accept = 'application/graphql-response+json';
  const sent = { accept, ...(status !== 401 && { authorization: `Bearer ${store.key}` }) };
  const { headers, text, ...answer } = await send(store.origin, { method, path, headers: sent });
  const code = status === 401 ? 'UNAUTHENTICATED' : 'NOT_FOUND';
  expect([answer.status, headers['content-type']]).toEqual([status, `${accept}; charset=utf-8`]);
  expect(JSON.parse(text)).toEqual({ errors: [{ message: expect.any(String), extensions: { code, status } }] });
});

const at = (parameters: Headers) => `/graphql?${new URLSearchParams(parameters)}`;
const authorized = () => ({ authorization: `Bearer ${store.key}` });
const response = 'application/graphql-response+json';

/** What is not of one moment. */
const lasting = ({ status, headers: { date, 'x-request-id': _id, ...headers } }: HttpResponse) => ({ status, headers });

test.each<[number, string, string, Headers]>([
  [200, 'a query', at({ query: '{ pets { id name } }' }), {}],
  [200, 'a query that fails', at({ query: '{ pets(limit: 0) { id } }' }), {}],
  [422, 'a query that is refused', at({ query: '{ nothing }' }), { accept: response }],
  [400, 'no query', '/graphql', {}],
  [401, 'a query without a key', at({ query: '{ pets { id } }' }), { authorization: '' }],
  [405, 'a mutation', at({ query: addRex }), {}],
  [415, 'a form', at({ query: '{ pets { id } }' }), { 'content-type': 'text/plain' }],
  [200, 'the visit of a browser', '/graphql', { accept: 'text/html', authorization: '' }],
])('HEAD is answered as GET, %i, without a body: %s', async (status, _what, path, given) => {
  const headers = { ...authorized(), ...given };
  for (let time = 0; time < 3; time += 1) {
    const head = await send(store.origin, { method: 'HEAD', path, headers });
    const got = await send(store.origin, { path, headers });
    expect(lasting(head)).toEqual(lasting(got));
    expect([head.status, head.text, head.headers['content-length']]).toEqual([
      status,
      '',
      `${Buffer.byteLength(got.text)}`,
    ]);
  }
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});

test('automatic persisted queries work with GRAPHQL_APQ=true: a hash is unknown, then registered, then enough', async () => {
  const query = '{ pets(limit: 1) { id } }';
  const extensions = { persistedQuery: { version: 1, sha256Hash: hash('sha256', query) } };
  const answer = { data: { pets: [] } };
  const unsupported = (await graphqlText(store, { query, extensions })).errors?.[0]?.extensions.code;
  expect(unsupported).toBe('PERSISTED_QUERY_NOT_SUPPORTED');
  await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
    const isUnknown = async () => {
      const [error] = (await graphqlText(node, { extensions })).errors ?? [];
      expect(error?.extensions.code).toBe('PERSISTED_QUERY_NOT_FOUND');
    };
    await isUnknown();
    // The hash of another text registers nothing.
    const other = await graphqlText(node, { query: '{ __typename }', extensions });
    expect(other.errors?.[0]?.message).toMatch(/sha/i);
    await isUnknown();
    expect(await graphqlText(node, { query, extensions })).toMatchObject(answer);
    expect(await graphqlText(node, { extensions })).toMatchObject(answer);
    const path = at({ extensions: JSON.stringify(extensions) });
    expect(JSON.parse((await send(node.origin, { path, headers: authorized() })).text)).toEqual(answer);
  });
});
