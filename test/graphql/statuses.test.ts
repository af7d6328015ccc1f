import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createSecret } from '../../src/access/keys/secret.ts';
import { newFolder } from '../support/folder.ts';
import { graphqlText } from '../support/graphql.ts';
import { type HttpRequest, send } from '../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, type ServiceNode, startNode, storeForAll } from '../support/store.ts';

/**
 * The table of docs/graphql.md: every outcome with every kind of `Accept`, by GraphQL over HTTP of September 2026. With
 * `application/json` a client must not believe the body of a 4xx (section 6.4).
 */

const store = storeForAll();
const nodes = {} as Record<'apq' | 'strict' | 'trusting' | 'guarded', ServiceNode>;
beforeAll(async () => {
  const manifest = join(await newFolder(), 'manifest.json');
  writeFileSync(manifest, '{}');
  nodes.apq = await startNode(store, { GRAPHQL_APQ: 'true' });
  nodes.strict = await startNode(store, { GRAPHQL_MAX_COST: '10' });
  nodes.trusting = await startNode(store, { TRUSTED_DOCUMENTS: manifest });
  nodes.guarded = await startNode(store, { AUTH_FAILURES_PER_MINUTE: '1' });
  // From here on every other wrong key is one too many.
  await send(nodes.guarded.origin, { path: '/graphql', headers: withKey(createSecret()) });
});
afterAll(() => Promise.all(Object.values(nodes).map((node) => node.close())));

const json = 'application/json';
const response = 'application/graphql-response+json';

type Ask = Omit<HttpRequest, 'path'> & { path?: string };
/** The members of an answer: its data, or the code and the place of its error. The words are the business of other tests. */
interface Answer {
  data?: unknown;
  code?: string;
  status?: number;
  locations?: unknown;
  path?: string[];
}
/** The statuses are those where the body is certainly GraphQL's, and where it is plain JSON. */
type Case = [what: string, statuses: [number, number], ask: Ask, answer: Answer, of?: keyof typeof nodes];

const withKey = (key: string) => ({ authorization: `Bearer ${key}` });
const post = (body: unknown, type = json): Ask => ({
  method: 'POST',
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const get = (parameters: Record<string, string>): Ask => ({ path: `/graphql?${new URLSearchParams(parameters)}` });
const failed = (code: string, status: number, place = {}): Answer => ({ code, status, ...place });
const badInput = (place = {}) => failed('BAD_USER_INPUT', 400, place);
const at = (line: number, column: number) => ({ locations: [{ line, column }] });
const typename = { query: '{ __typename }' };
const find = 'query Find($id: ID!) { pet(id: $id) { id } }';
const create = 'mutation { createPet(input: { name: "", categoryId: "x" }) { id } }';
const sha256Hash = hash('sha256', typename.query);
const persisted = (sha256Hash: string) => post({ extensions: { persistedQuery: { version: 1, sha256Hash } } });
const notSupported = failed('PERSISTED_QUERY_NOT_SUPPORTED', 400);

/** A field without a value. */
const nullAt = (column: number, path: string) => ({ data: null, ...badInput({ ...at(1, column), path: [path] }) });

const cases: Case[] = [
  ['data', [200, 200], post({ query: '{ pets { id } }' }), { data: { pets: [] } }],
  ['an error, and no data for it', [294, 200], post({ query: '{ pets(limit: 0) { id } }' }), nullAt(3, 'pets')],
  ['a mutation that is refused', [294, 200], post({ query: create }), nullAt(12, 'createPet')],
  ['no document', [400, 200], post({ query: '{' }), failed('GRAPHQL_PARSE_FAILED', 400, at(1, 2))],
  ['no field', [422, 200], post({ query: '{ nothing }' }), failed('GRAPHQL_VALIDATION_FAILED', 400, at(1, 3))],
  ['its cost', [422, 200], post({ query: '{ pets { id } }' }), failed('QUERY_TOO_COSTLY', 400, at(1, 1)), 'strict'],
  ['an operation that is not there', [422, 200], post({ ...typename, operationName: 'B' }), badInput()],
  ['a variable of another type', [422, 200], post({ query: find, variables: { id: [] } }), badInput(at(1, 12))],
  ['no query', [422, 400], post({ variables: {} }), badInput()],
  ['variables that are a list', [422, 400], post({ ...typename, variables: [7] }), badInput()],
  ['a parameter twice', [422, 400], { path: '/graphql?query={__typename}&query={__typename}' }, badInput()],
  ['a documentId, where none is registered', [422, 400], post({ documentId: `sha256:${sha256Hash}` }), notSupported],
  ['the same by GET', [422, 400], get({ documentId: `sha256:${sha256Hash}`, variables: '{}' }), notSupported, 'apq'],
  ['a persisted query', [422, 200], persisted(sha256Hash), notSupported],
  ['an unknown one', [422, 200], persisted('a'.repeat(64)), failed('PERSISTED_QUERY_NOT_FOUND', 400), 'apq'],
  ['a mutation by GET', [405, 405], get({ query: create }), failed('METHOD_NOT_ALLOWED', 405)],
  ['a body that is no JSON', [400, 400], post('{"query":'), badInput()],
  ['variables that are no JSON', [400, 400], get({ ...typename, variables: '{' }), badInput()],
  ['a form', [415, 415], post('query={__typename}', 'text/plain'), failed('UNSUPPORTED_MEDIA_TYPE', 415)],
  ['no key', [401, 401], { headers: { authorization: '' } }, failed('UNAUTHENTICATED', 401)],
  ['too large a body', [413, 413], post(`"${'x'.repeat(1_100_000)}"`), failed('PAYLOAD_TOO_LARGE', 413)],
  ['no trusted document', [403, 403], post(typename), failed('OPERATION_NOT_TRUSTED', 403), 'trusting'],
  ['many keys', [429, 429], { headers: withKey(createSecret()) }, failed('TOO_MANY_REQUESTS', 429), 'guarded'],
];

describe.each<[string | undefined, string]>([
  [undefined, json],
  ['application/*', json],
  // The same, in words that Apollo Server's part for HTTP reads.
  ['application/json;q=0.9, application/*;q=0.1', json],
  [`${json}, ${response};q=0.5`, json],
  [response, response],
  [`${response}; charset=utf-8, ${json}; charset=utf-8; q=0.9`, response],
  // What Apollo Client, graphql-request and urql send, and what the specification advises.
  [`${response}, application/graphql+json, ${json}, text/event-stream`, response],
  [`text/plain, ${response};q=0.1`, response],
])('to Accept: %s', (accept, type) => {
  test.each(cases)('%s', async (_what, is, ask, { data, code, status = 400, ...place }, of) => {
    const { origin } = of ? nodes[of] : store;
    const headers = { ...withKey(store.key), ...(accept && { accept }), ...ask.headers };
    const wait = status === 429 && { retryAfter: expect.any(Number) };
    const error = { message: expect.any(String), ...place, extensions: { code, status, ...wait } };
    // Interpreted, compiled, and from the cache.
    for (let time = 1; time <= 3; time += 1) {
      const answer = await send(origin, { path: '/graphql', ...ask, headers });
      const expected = type === response ? is[0] : is[1];
      expect([answer.status, answer.headers['content-type']]).toEqual([expected, `${type}; charset=utf-8`]);
      expect(JSON.parse(answer.text)).toEqual({
        ...(code && { errors: [error] }),
        ...(data !== undefined && { data }),
      });
      if (wait)
        expect(JSON.parse(answer.text).errors[0].extensions.retryAfter).toBe(Number(answer.headers['retry-after']));
    }
  });
});

test('an Accept of thousands of types is taken for none: reading it would take tens of milliseconds', async () => {
  const types = 'a/b,'.repeat(3000);
  const answered = async (path: string, accept: string, key = '') => {
    const { status, headers } = await send(store.origin, { path, headers: { accept, ...(key && withKey(key)) } });
    return [status, headers['content-type']];
  };
  const type = `${json}; charset=utf-8`;
  expect(await answered('/graphql', types + response)).toEqual([401, type]);
  expect(await answered('/graphql?query={__typename}', types + response, store.key)).toEqual([200, type]);
  expect(await answered('/', `${types}text/html`)).toEqual([200, type]);
});

test('who accepts neither gets 406, and nothing has happened', async () => {
  const query = 'mutation { createPet(input: { name: "x", categoryId: 1 }) { id } }';
  const { status, headers, text } = await graphqlText(store, { query }, store.key, { accept: 'image/png' });
  const message =
    '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';
  const errors = [{ message, extensions: { code: 'NOT_ACCEPTABLE', status: 406 } }];
  expect([status, headers['content-type'], JSON.parse(text)]).toEqual([406, `${json}; charset=utf-8`, { errors }]);
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});

test('what a quota leaves of an operation is data: 294, or 429 where the type does not say so', async () => {
  // Each of the two costs one, and one a minute is all there is.
  const body = { query: '{ a: pet(id: 1) { id } b: pet(id: 2) { id } }' };
  for (const [accept, status] of [
    [response, 294],
    [json, 429],
  ] as const) {
    await onNode(store, { QUOTA_PER_MINUTE: '1' }, async (node) => {
      const answer = await graphqlText(node, body, node.key, { accept });
      expect(answer).toMatchObject({
        status,
        data: { a: null, b: null },
        errors: [{ path: ['b'], extensions: { code: 'TOO_MANY_REQUESTS', status: 429 } }],
      });
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    });
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
