import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecret } from '../../src/access/keys/secret.ts';
import { type HttpRequest, send } from '../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, startNode } from '../support/nodes.ts';
import { type Store, startStore } from '../support/store.ts';

/**
 * The media type of a failure is chosen by `Accept`, wherever it is found. With `application/json` a client must
 * not believe the body of a 4xx (GraphQL over HTTP, section 6.4).
 */

let folder: string;
let store: Store;
let node: ServiceNode;
beforeAll(async () => {
  store = await startStore();
  folder = mkdtempSync(join(tmpdir(), 'animal-store-manifest-'));
  const manifest = join(folder, 'persisted-documents.json');
  writeFileSync(manifest, '{}');
  node = await startNode(store, { TRUSTED_DOCUMENTS: manifest, AUTH_FAILURES_PER_MINUTE: '1' });
});
afterAll(async () => {
  await node.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

const json = 'application/json; charset=utf-8';
const response = 'application/graphql-response+json; charset=utf-8';

interface Failure {
  what: string;
  status: number;
  code: string;
  request(): Omit<HttpRequest, 'path'>;
  of?(): ServiceNode;
}

const post = (body: string, type = 'application/json') => ({
  method: 'POST',
  headers: { authorization: `Bearer ${store.key}`, 'content-type': type },
  body,
});
const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

/** Whatever fails before Apollo Server has seen the request. */
const failures: Failure[] = [
  { what: 'no key', status: 401, code: 'UNAUTHENTICATED', request: () => ({ headers: {} }) },
  { what: 'a wrong key', status: 401, code: 'UNAUTHENTICATED', request: () => withKey('wrong') },
  { what: 'malformed JSON', status: 400, code: 'BAD_USER_INPUT', request: () => post('{') },
  { what: 'a form', status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', request: () => post('{}', 'text/plain') },
  {
    what: 'a body that is too large',
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
    request: () => post(`"${'x'.repeat(1_100_000)}"`),
  },
  {
    what: 'a document that is not trusted',
    status: 403,
    code: 'OPERATION_NOT_TRUSTED',
    request: () => post('{"query":"{__typename}"}'),
    of: () => node,
  },
  {
    what: 'too many wrong keys',
    status: 429,
    code: 'TOO_MANY_REQUESTS',
    request: () => withKey(createSecret()),
    of: () => node,
  },
];

describe.each<[string | undefined, string]>([
  [undefined, json],
  ['*/*', json],
  ['application/json', json],
  ['application/*', json],
  ['application/json;q=0.9, application/*;q=0.1', json],
  ['application/json, application/graphql-response+json;q=0.9', json],
  ['application/graphql-response+json', response],
  ['application/graphql-response+json; charset=utf-8', response],
  ['application/graphql-response+json; charset=utf-8, application/json; charset=utf-8; q=0.9', response],
  // What Apollo Client, urql and graphql-request send.
  ['application/graphql-response+json,application/json;q=0.9', response],
  ['application/graphql-response+json, application/graphql+json, application/json, text/event-stream', response],
  ['application/graphql-response+json, application/json', response],
  ['text/plain, application/graphql-response+json;q=0.1', response],
])('to Accept: %s', (accept, type) => {
  const ask = (origin: string, request: Omit<HttpRequest, 'path'>) =>
    send(origin, { ...request, path: '/graphql', headers: { ...(accept && { accept }), ...request.headers } });

  test.each(failures)('$what is answered in its type', async ({ status, code, request, of }) => {
    const { origin } = of?.() ?? store;
    // The limit is one.
    if (status === 429) await ask(origin, request());
    const answer = await ask(origin, request());
    expect([answer.status, answer.headers['content-type']]).toEqual([status, type]);
    const wait = status === 429 && { retryAfter: Number(answer.headers['retry-after']) };
    expect(JSON.parse(answer.text)).toEqual({
      errors: [{ message: expect.any(String), extensions: { code, status, ...wait } }],
    });
  });

  test.each([
    ['an operation', '{"query":"{"}', 'GRAPHQL_PARSE_FAILED'],
    ['what Apollo Server takes for no operation', '{}', 'BAD_USER_INPUT'],
  ])('a failure of %s is answered in the same', async (_what, body, code) => {
    const { headers, text } = await ask(store.origin, post(body));
    const isEvent = accept?.startsWith('text/event-stream') && body !== '{}';
    expect(headers['content-type']).toBe(isEvent ? 'text/event-stream; charset=utf-8' : type);
    if (isEvent) return expect(text).toContain(`"code":"${code}"`);
    expect(JSON.parse(text)).toMatchObject({ errors: [{ extensions: { code } }] });
  });
});

test('an Accept of thousands of types is taken for none: reading it would take tens of milliseconds', async () => {
  const accept = `${'a/b,'.repeat(3000)}application/graphql-response+json`;
  const answers = [
    await send(store.origin, { path: '/graphql', headers: { accept } }),
    await send(store.origin, {
      path: '/graphql?query={__typename}',
      headers: { accept, ...withKey(store.key).headers },
    }),
    await send(store.origin, { path: '/', headers: { accept: `${'a/b,'.repeat(3000)}text/html` } }),
  ];
  expect(answers.map(({ status, headers }) => [status, headers['content-type']])).toEqual([
    [401, json],
    [200, json],
    [200, json],
  ]);
});

test.each(['text/html', 'application/json;q=0', 'nothing at all', 'image/png'])(
  'to whoever accepts neither (%s) it is JSON',
  async (accept) => {
    const { status, headers, text } = await send(store.origin, {
      method: 'POST',
      path: '/graphql',
      headers: { accept },
    });
    expect([status, headers['content-type']]).toEqual([401, json]);
    expect(JSON.parse(text)).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED', status: 401 } }] });
  },
);
