import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { httpStatusOf, restCodes } from '../../src/errors.ts';
import { whileReadsFail, whileWritesWait } from '../support/database-access.ts';
import { newFolder } from '../support/folder.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type RestRequest, rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

/** The vocabulary of both faces: every code can be heard, no other, and docs/errors.md shows the answer. */

const store = storeForAll();

const [beginning = '', ...chapters] = readFileSync('docs/errors.md', 'utf8').split(/^### /m);
const example = /^```json\n(.+)\n```$/m;

/** docs/errors.md: the answer to a field that fails. */
const documentedFieldError: unknown = JSON.parse(example.exec(beginning)?.[1] ?? 'null');

/** docs/errors.md: the example of each code, in its order. */
const documentedErrors: ReadonlyMap<string, unknown> = new Map(
  chapters.map((chapter) => {
    const [, code = ''] = /^(\w+)\n\n\*\*Means\.\*\* .+\n\n\*\*Do\.\*\* ./s.exec(chapter) ?? [];
    return [code, JSON.parse(example.exec(chapter)?.[1] ?? 'null')];
  }),
);

const { description } = JSON.parse(readFileSync('schema/openapi.json', 'utf8')).components.schemas.Error.properties
  .code;
const listed: string[] = description.replace(/^Machine-readable error code: (.+)\.$/, '$1').split(', ');

type Refusal = { code: string; status: number };
const refusal = async (path: string, request: RestRequest = {}): Promise<Refusal> =>
  (await rest(store, path, request)).json;

async function raw(head: string): Promise<Refusal> {
  const headers = `Authorization: Bearer ${store.key}\r\n${head}`;
  const [response] = await exchange(store, requestText('POST /v1/pets', headers));
  return JSON.parse(response?.text ?? '');
}

const post = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const keyed = { ...post, headers: { 'idempotency-key': 'the-key-of-rex' } };

const heard: Record<string, [status: number, how: () => Promise<Refusal>]> = {
  BAD_USER_INPUT: [400, () => refusal('/v1/pets?limit=0')],
  UNAUTHENTICATED: [401, () => refusal('/v1/pets', { key: null })],
  FORBIDDEN: [
    403,
    async () => refusal('/v1/pets', { ...post, key: (await store.keys.issue({ name: 'r', scope: 'read' })).key }),
  ],
  NOT_FOUND: [404, () => refusal('/v1/nothing')],
  METHOD_NOT_ALLOWED: [405, () => refusal('/v1/pets', { method: 'PUT' })],
  REQUEST_TIMEOUT: [
    408,
    () =>
      onNode(store, { REQUEST_TIMEOUT_MS: '1' }, async (node) => {
        const [response] = await exchange({ ...store, ...node }, 'POST /v1/pets HTTP/1.1\r\nHost: a\r\n');
        return JSON.parse(response?.text ?? '');
      }),
  ],
  IDEMPOTENCY_KEY_IN_USE: [
    409,
    () =>
      onNode(store, { DATABASE_STATEMENT_TIMEOUT_MS: '1' }, (node) =>
        whileWritesWait(store.database, async () => {
          const both = await Promise.all([rest(node, '/v1/pets', keyed), rest(node, '/v1/pets', keyed)]);
          return both.find(({ status }) => status === 409)?.json;
        }),
      ),
  ],
  PAYLOAD_TOO_LARGE: [413, () => raw('Content-Type: application/json\r\nContent-Length: 9999999\r\n')],
  UNSUPPORTED_MEDIA_TYPE: [415, () => refusal('/v1/pets', { ...post, headers: { 'content-type': 'text/plain' } })],
  IDEMPOTENCY_KEY_REUSED: [
    422,
    async () => {
      const once = { ...keyed, headers: { 'idempotency-key': 'the-key-of-ada' } };
      await rest(store, '/v1/pets', once);
      return refusal('/v1/pets', { ...once, json: { name: 'Ada', categoryId: 1 } });
    },
  ],
  TOO_MANY_REQUESTS: [
    429,
    () =>
      onNode(store, { QUOTA_PER_MINUTE: '2' }, async (node) => {
        for (let call = 0; call < 2; call += 1) await rest(node, '/v1/pets');
        return (await rest(node, '/v1/pets')).json;
      }),
  ],
  REQUEST_HEADER_FIELDS_TOO_LARGE: [431, () => raw(`X-Long: ${'x'.repeat(20_000)}\r\n`)],
  INTERNAL_SERVER_ERROR: [500, () => whileReadsFail(store.database, 'XX000', () => refusal('/v1/pets'))],
  NOT_IMPLEMENTED: [501, () => refusal('/v1/store/orders')],
  SERVICE_UNAVAILABLE: [503, () => whileReadsFail(store.database, '57P03', () => refusal('/v1/pets'))],
};

test('Error.code lists exactly the codes that REST answers', () => {
  expect(listed).toEqual(Object.keys(heard));
});

test.each(Object.keys(heard))('REST answers %s, as docs/errors.md shows it', async (code) => {
  const [status, how] = heard[code] as (typeof heard)[string];
  const answer = await how();
  expect(answer).toEqual({ code, status, message: expect.any(String) });
  expect(documentedErrors.get(code)).toEqual(answer);
});

const times = (count: number, text: string) => Array.from({ length: count }, () => text).join(' ');
const hashAlone = { extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } };

interface Way {
  body: { query: string } | typeof hashAlone;
  env?: () => Promise<Record<string, string>> | Record<string, string>;
  accept?: string;
}

const ways: Record<string, Way> = {
  GRAPHQL_PARSE_FAILED: { body: { query: '{ pets' } },
  GRAPHQL_VALIDATION_FAILED: { body: { query: '{ pets(status: Sold) { id } }' } },
  NOT_ACCEPTABLE: { body: { query: '{ pets { id } }' }, accept: 'text/plain' },
  TOO_MANY_TOKENS: { body: { query: `{ ${times(1001, 'name')} }` } },
  QUERY_TOO_DEEP: {
    body: { query: `{ __schema { types { fields { type ${times(13, '{ ofType')} { name } ${times(13, '}')} } } } }` },
  },
  TOO_MANY_ALIASES: { body: { query: `{ pets { ${times(51, 'a: id')} } }` } },
  TOO_MANY_ROOT_FIELDS: { body: { query: `{ ${times(51, '__typename')} }` } },
  TOO_MANY_DIRECTIVES: { body: { query: `{ pets { ${times(51, 'id @include(if: true)')} } }` } },
  QUERY_TOO_COSTLY: { body: { query: '{ pets(limit: 100) { id } }' }, env: () => ({ GRAPHQL_MAX_COST: '100' }) },
  OPERATION_NOT_TRUSTED: {
    body: { query: '{ pets { id } }' },
    env: async () => {
      const manifest = join(await newFolder(), 'manifest.json');
      writeFileSync(manifest, '{}');
      return { TRUSTED_DOCUMENTS: manifest };
    },
  },
  PERSISTED_QUERY_NOT_FOUND: { body: hashAlone, env: () => ({ GRAPHQL_APQ: 'true' }) },
  PERSISTED_QUERY_NOT_SUPPORTED: { body: hashAlone },
};

test('docs/errors.md has a chapter for every code, and for no other', () => {
  const codes = new Set([...restCodes, ...Object.keys(httpStatusOf), ...Object.keys(ways)]);
  expect([...documentedErrors.keys()].sort()).toEqual([...codes].sort());
});

async function answerTo({ body, accept = 'application/json' }: Way, { origin } = store as { origin: string }) {
  const headers = { authorization: `Bearer ${store.key}`, 'content-type': 'application/json', accept };
  const { text } = await send(origin, { method: 'POST', path: '/graphql', headers, body: JSON.stringify(body) });
  return JSON.parse(text);
}

test.each(Object.keys(ways))('GraphQL answers %s, as docs/errors.md shows it', async (code) => {
  const way = ways[code] as Way;
  const answer = way.env ? onNode(store, await way.env(), (node) => answerTo(way, node)) : answerTo(way);
  expect(await answer).toEqual(documentedErrors.get(code));
});

test('GraphQL answers a field that fails as docs/errors.md shows it', async () => {
  expect(await answerTo({ body: { query: '{ pets(limit: 0) { id } }' } })).toEqual(documentedFieldError);
});
