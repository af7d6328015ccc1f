import { createHash } from 'node:crypto';
import { sql, stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll({}, async () => {
  await stock(store.database, 2);
});

const preflight = { 'apollo-require-preflight': 'true' };

function get(
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
  { origin }: Pick<ServiceNode, 'origin'> = store,
): Promise<HttpResponse> {
  const path = `/graphql?${new URLSearchParams(parameters)}`;
  return send(origin, { path, headers: { authorization: `Bearer ${store.key}`, ...headers } });
}

const codeOf = ({ text }: HttpResponse) => JSON.parse(text).errors?.[0]?.extensions;

describe('GET', () => {
  test('runs queries', async () => {
    const { status, text } = await get({ query: '{ pets(limit: 1) { id } }' });
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 200, body: { data: { pets: [{ id: '1' }] } } });
  });

  test.each([
    ['a mutation', { query: 'mutation { createPet(input: { name: "x", categoryId: 1 }) { id } }' }],
    [
      'a mutation among queries',
      {
        query: 'query A { __typename } mutation B { createPet(input: { name: "x", categoryId: 1 }) { id } }',
        operationName: 'B',
      },
    ],
  ])('does not run %s: 405 with Allow', async (_what, parameters) => {
    const response = await get(parameters);
    expect(response.status).toBe(405);
    expect(response.headers.allow).toBe('GET, HEAD, OPTIONS, POST');
    expect(codeOf(response)).toEqual({ code: 'METHOD_NOT_ALLOWED', status: 405 });
    expect((await rest(store, '/v1/pets')).json).toHaveLength(2);
  });

  test.each(['9223372036854775807', '9007199254740993', '-9223372036854775807'])(
    'takes the variable %s to the last digit, as a number and as a string',
    async (id) => {
      const text =
        "insert into pet (id, name, category_id, status) overriding system value values ($1, 'x', 1, 'sold')";
      await sql(store.database, text, [id]);
      try {
        const query = 'query ($id: ID!) { pet(id: $id) { id } }';
        for (const value of [id, `"${id}"`]) {
          const response = await get({ query, variables: `{"id":${value}}` });
          expect(JSON.parse(response.text)).toEqual({ data: { pet: { id } } });
        }
        const beside = BigInt(id) + (id.startsWith('-') ? 1n : -1n);
        const other = await get({ query, variables: `{"id":${beside}}` });
        expect(JSON.parse(other.text)).toEqual({ data: { pet: null } });
      } finally {
        await sql(store.database, 'delete from pet where id = $1', [id]);
      }
    },
  );

  test.each(['{"__proto__":1}', '{"__proto__":{"limit":"many"},"constructor":{"prototype":{"limit":0}}}'])(
    'with the variables %s has none: such names are ignored',
    async (variables) => {
      const query = 'query ($limit: Int) { pets(limit: $limit) { id } }';
      const { status, text } = await get({ query, variables });
      expect({ status, body: JSON.parse(text) }).toEqual({
        status: 200,
        body: { data: { pets: [{ id: '1' }, { id: '2' }] } },
      });
    },
  );

  test.each(['{', 'null,', '[1'])('with the variables %s is refused', async (variables) => {
    const response = await get({ query: '{ __typename }', variables });
    expect(response.status).toBe(400);
    expect(codeOf(response)).toEqual({ code: 'BAD_USER_INPUT', status: 400 });
  });
});

describe('requests that a foreign page can make a browser send are refused:', () => {
  const query = '{ __typename }';
  // A browser sends Authorization to another origin after a preflight only.
  test.each<[string, Record<string, string>]>([
    ['no header at all', {}],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['a multipart form', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['text', { 'content-type': 'text/plain' }],
    ['text with parameters', { 'content-type': 'text/plain; charset=application/json' }],
  ])('GET with %s', async (_what, headers) => {
    const path = `/graphql?${new URLSearchParams({ query })}`;
    const response = await send(store.origin, { path, headers });
    expect(response.status).toBe(401);
    expect(codeOf(response)).toEqual({ code: 'UNAUTHENTICATED', status: 401 });
  });

  test.each<[string, string, string | undefined]>([
    ['a form', 'query=%7B__typename%7D', 'application/x-www-form-urlencoded'],
    [
      'a multipart form',
      '--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{__typename}"}\r\n--x--',
      'multipart/form-data; boundary=x',
    ],
    ['text', '{"query":"{__typename}"}', 'text/plain'],
    ['text that says it is JSON', '{"query":"{__typename}"}', 'text/plain; application/json'],
    ['no media type', '{"query":"{__typename}"}', undefined],
    ['bare GraphQL', '{__typename}', 'application/graphql'],
  ])('POST of %s', async (_what, body, type) => {
    const headers = { authorization: `Bearer ${store.key}`, ...(type && { 'content-type': type }) };
    const response = await send(store.origin, { method: 'POST', path: '/graphql', headers, body });
    expect(response.status).toBe(415);
    expect(codeOf(response)).toEqual({ code: 'UNSUPPORTED_MEDIA_TYPE', status: 415 });
  });

  test('and none of them without a key comes so far', async () => {
    const path = '/graphql?query=%7B__typename%7D';
    expect((await send(store.origin, { path, headers: preflight })).status).toBe(401);
    expect((await send(store.origin, { path, headers: { cookie: `authorization=Bearer ${store.key}` } })).status).toBe(
      401,
    );
  });
});

test.each([
  ['an empty batch', []],
  ['a batch of one', [{ query: '{ __typename }' }]],
  ['a batch of many', Array.from({ length: 100 }, () => ({ query: '{ __typename }' }))],
])('%s is refused: batching is off', async (_what, batch) => {
  const { status, errors, data } = await graphqlText(store, batch);
  expect({ status, data }).toEqual({ status: 400, data: undefined });
  expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', status: 400 });
});

describe('automatic persisted queries', () => {
  const query = '{ pets(limit: 1) { id } }';
  const sha256Hash = createHash('sha256').update(query).digest('hex');
  const extensions = { persistedQuery: { version: 1, sha256Hash } };

  test('are off unless asked for', async () => {
    for (const body of [{ extensions }, { query, extensions }]) {
      const { errors } = await graphqlText(store, body);
      expect(errors?.[0]?.extensions.code).toBe('PERSISTED_QUERY_NOT_SUPPORTED');
    }
  });

  test('work with GRAPHQL_APQ=true: a hash is unknown, then registered, then enough, by POST and GET', async () => {
    await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
      const unknown = await graphqlText(node, { extensions });
      expect(unknown.errors?.[0]?.extensions.code).toBe('PERSISTED_QUERY_NOT_FOUND');
      const expected = { data: { pets: [{ id: '1' }] } };
      expect(await graphqlText(node, { query, extensions })).toMatchObject(expected);
      expect(await graphqlText(node, { extensions })).toMatchObject(expected);
      const byGet = await get({ extensions: JSON.stringify(extensions) }, {}, node);
      expect(JSON.parse(byGet.text)).toEqual(expected);
    });
  });

  test('cannot be poisoned by a hash of another text', async () => {
    await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
      const { errors } = await graphqlText(node, { query: '{ __typename }', extensions });
      expect(errors?.[0]?.message).toMatch(/sha/i);
      expect((await graphqlText(node, { extensions })).errors?.[0]?.extensions.code).toBe('PERSISTED_QUERY_NOT_FOUND');
    });
  });
});
