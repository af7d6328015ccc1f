import { hash } from 'node:crypto';
import { graphqlText } from '../support/graphql.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/** Browsers, HEAD and persisted queries over GraphQL's address; statuses.test.ts has the table of requests. */

const store = storeForAll();
beforeEach(() => store.empty());

type Headers = Record<string, string>;

const addRex = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

test.each(['variables', 'extensions', 'operationName', 'documentId'])(
  'by GET an empty %s is an absent one',
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
