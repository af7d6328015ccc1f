import { hash } from 'node:crypto';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/**
 * Browsers, HEAD and persisted queries at /graphql; http-status.test.ts has the
 * table of requests.
 */

const store = storeForAll();
beforeEach(() => store.empty());

type Headers = Record<string, string>;

describe('a browser', () => {
  const page =
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const visit = (path: string, headers: Headers, method = 'GET') =>
    send(store.origin, { method, path, headers: { accept: page, ...headers } });

  test('is refused with a wrong key, by POST, and when it prefers JSON', async () => {
    expect(
      (await visit('/graphql', { authorization: 'Bearer wrong' })).status,
    ).toBe(401);
    expect((await visit('/graphql', {}, 'POST')).status).toBe(401);
    expect(
      (await visit('/graphql', { accept: 'application/json, text/html' }))
        .status,
    ).toBe(401);
  });
});

const at = (parameters: Headers) =>
  `/graphql?${new URLSearchParams(parameters)}`;
const authorized = () => ({ authorization: `Bearer ${store.key}` });
test('automatic persisted queries work with GRAPHQL_APQ=true: a hash is unknown, then registered, then sufficient', async () => {
  const query = '{ pets(limit: 1) { id } }';
  const extensions = {
    persistedQuery: { version: 1, sha256Hash: hash('sha256', query) },
  };
  const expected = { data: { pets: [] } };
  const unsupported = (await graphqlText(store, { query, extensions }))
    .errors?.[0]?.extensions.code;
  expect(unsupported).toBe('PERSISTED_QUERY_NOT_SUPPORTED');
  await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
    const isUnknown = async () => {
      const [error] = (await graphqlText(node, { extensions })).errors ?? [];
      expect(error?.extensions.code).toBe('PERSISTED_QUERY_NOT_FOUND');
    };
    await isUnknown();
    // The hash of another text registers nothing.
    const other = await graphqlText(node, {
      query: '{ __typename }',
      extensions,
    });
    expect(other.errors?.[0]?.message).toMatch(/sha/i);
    await isUnknown();
    expect(await graphqlText(node, { query, extensions })).toMatchObject(
      expected,
    );
    expect(await graphqlText(node, { extensions })).toMatchObject(expected);
    const path = at({ extensions: JSON.stringify(extensions) });
    expect(
      JSON.parse(
        (await send(node.origin, { path, headers: authorized() })).text,
      ),
    ).toEqual(expected);
  });
});
