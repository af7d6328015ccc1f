import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stock } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { type ServiceNode, type Store, startNode, startStore } from '../../support/store.ts';

const list = 'query List($limit: Int) { pets(limit: $limit) { id } }';
const find = 'query Find { pet(id: "1") { id } }';
const create = 'mutation Create { createPet(input: { name: "x", categoryId: 1 }) { id } }';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
/** As codegen's client preset writes it: SHA-1 by default. */
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
const persisted = (sha256Hash: unknown) => ({ persistedQuery: { version: 1, sha256Hash } });

let folder: string;
let store: Store;
let node: ServiceNode;
beforeAll(async () => {
  store = await startStore();
  await stock(store.database, 2);
  folder = mkdtempSync(join(tmpdir(), 'animal-store-manifest-'));
  const manifest = join(folder, 'persisted-documents.json');
  writeFileSync(
    manifest,
    JSON.stringify({ [sha1(list)]: list, [sha256(create)]: create, [`sha256:${sha256(find)}`]: find }),
  );
  node = await startNode(store, { TRUSTED_DOCUMENTS: manifest });
});
afterAll(async () => {
  await node.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

async function get(parameters: Record<string, unknown>) {
  const search = Object.entries(parameters).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const { status, text } = await send(node.origin, {
    path: `/graphql?${new URLSearchParams(search)}`,
    headers: { authorization: `Bearer ${node.key}`, 'apollo-require-preflight': 'true' },
  });
  return { status, ...JSON.parse(text) };
}

const variables = { limit: 1 };
const one = { data: { pets: [{ id: '1' }] } };

test.each([
  ['the hash of the manifest as documentId', { documentId: sha1(list), variables }],
  ['its SHA-256 as documentId', { documentId: sha256(list), variables }],
  ['the same as a document identifier', { documentId: `sha256:${sha256(list)}`, variables }],
  ["the SHA-256 as Apollo's clients send it", { extensions: persisted(sha256(list)), variables }],
  ['the exact text', { query: list, variables }],
  ['text and hash', { query: list, documentId: sha1(list), extensions: persisted(sha256(list)), variables }],
  ['an operation name', { documentId: sha1(list), operationName: 'List', variables }],
])('a trusted document is run by %s, with POST and GET', async (_how, request) => {
  for (let time = 0; time < 3; time += 1) expect(await graphqlText(node, request)).toMatchObject(one);
  expect(await get(request)).toMatchObject(one);
});

test('a document of a manifest of identifiers is run by them, and by the hash alone', async () => {
  for (const documentId of [`sha256:${sha256(find)}`, sha256(find)]) {
    expect(await graphqlText(node, { documentId })).toMatchObject({ status: 200, data: { pet: { id: '1' } } });
    expect(await get({ documentId })).toMatchObject({ status: 200, data: { pet: { id: '1' } } });
  }
});

test('a text and a documentId must be the same document', async () => {
  for (const documentId of [`sha256:${sha256(create)}`, sha256('nothing'), 5]) {
    for (const answer of [
      await graphqlText(node, { query: list, documentId }),
      await get({ query: list, documentId }),
    ]) {
      expect(answer).toMatchObject({
        status: 403,
        errors: [
          {
            message: '`query` and `documentId` are different documents: send one of them.',
            extensions: { code: 'OPERATION_NOT_TRUSTED', status: 403 },
          },
        ],
      });
    }
  }
  for (const documentId of [sha1(list), `sha256:${sha256(list)}`]) {
    expect(await graphqlText(node, { query: list, documentId, variables })).toMatchObject(one);
  }
});

test('without registered documents it is said so, by POST and GET', async () => {
  const documentId = `sha256:${sha256(list)}`;
  const headers = { authorization: `Bearer ${store.key}` };
  const byGet = await send(store.origin, { path: `/graphql?documentId=${documentId}`, headers });
  const message = 'No documents are registered here (TRUSTED_DOCUMENTS): send the text as `query`.';
  const errors = [{ message, extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED', status: 400 } }];
  expect(JSON.parse(byGet.text)).toEqual({ errors });
  expect(await graphqlText(store, { documentId })).toMatchObject({ status: 400, errors });
});

test.each<[string, Record<string, unknown>]>([
  ['another text', { query: '{ pets { id } }' }],
  ['one more space', { query: `${list} ` }],
  ['one space changed', { query: list.replace('List(', 'List (') }],
  ['a comment more', { query: `${list}#` }],
  ['introspection', { query: '{ __schema { queryType { name } } }' }],
  ['a trusted hash and another text', { documentId: sha1(list), query: '{ pets { id } }' }],
  ["Apollo's trusted hash and another text", { extensions: persisted(sha256(list)), query: '{ pets { id } }' }],
  ['a hash that is not there', { documentId: sha256('{ pets { id } }') }],
  ['an identifier that is not there', { documentId: `sha256:${sha256('{ pets { id } }')}` }],
  ['an identifier in capital letters', { documentId: `sha256:${sha256(list).toUpperCase()}` }],
  ['another kind of identifier', { documentId: `x-sha256:${sha256(list)}` }],
  ['the prefix before another hash', { documentId: `sha256:${sha1(list)}` }],
  ['a hash in capital letters', { documentId: sha1(list).toUpperCase() }],
  ['a name of every object', { documentId: '__proto__' }],
  ['nothing', { variables }],
  ['an empty text', { query: '' }],
])('%s is refused with OPERATION_NOT_TRUSTED, with POST and GET', async (_what, request) => {
  const refused = {
    status: 403,
    errors: [
      {
        message: 'Only operations that were registered beforehand are run here.',
        extensions: { code: 'OPERATION_NOT_TRUSTED', status: 403 },
      },
    ],
  };
  expect(await graphqlText(node, request)).toMatchObject(refused);
  expect(await get(request)).toMatchObject(refused);
});

test.each([
  '{}',
  '{"documentId":{"toString":1}}',
  `{"documentId":["${sha1(list)}"]}`,
  '{"extensions":null}',
  '{"extensions":{"persistedQuery":null}}',
  '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":{"toString":null}}}}',
])('the body %j is refused, not a failure of ours', async (body) => {
  const { status, errors } = await graphqlText(node, body);
  expect({ status, code: errors?.[0]?.extensions.code }).toEqual({ status: 403, code: 'OPERATION_NOT_TRUSTED' });
});

test.each(['', 'null', '1', '"text"', '[]', `[{"documentId":"${sha1(list)}"}]`])(
  'the body %j is refused',
  async (body) => {
    const { status, errors } = await graphqlText(node, body);
    expect({ status, code: errors?.[0]?.extensions.code }).toEqual({ status: 400, code: 'BAD_USER_INPUT' });
  },
);

test('a text that is no string beside a trusted hash never runs as a text', async () => {
  for (const query of [1, ['{ pets { id } }'], { toString: 1 }]) {
    expect((await graphqlText(node, { query, documentId: sha1(list) })).status).toBe(400);
  }
});

test('a trusted mutation is still none for GET, and a key is still needed', async () => {
  for (const documentId of [sha256(create), `sha256:${sha256(create)}`]) {
    expect(await get({ documentId })).toMatchObject({ status: 405 });
  }
  expect((await graphqlText(node, { documentId: sha1(list) }, null)).status).toBe(401);
});

/** `test/deep/operations/start-failure.test.ts` has what the process makes of it. */
describe('a manifest that cannot be used stops the start with one readable line', () => {
  test.each<[string, string | undefined, RegExp]>([
    ['missing', undefined, /cannot be read: ENOENT/],
    ['no JSON', 'query { pets { id } }', /is not a manifest: a JSON object of hash -> document/],
    ['null', 'null', /is not a manifest/],
    ['a number', '5', /is not a manifest/],
    [
      'an identifier of another text',
      '{"sha256:abc":"{__typename}"}',
      /has a document under sha256:abc whose SHA-256 is ecf4/,
    ],
    ['an array', '["{ pets { id } }"]', /is not a manifest/],
    [
      'of another kind',
      '{"format":"apollo-persisted-query-manifest","version":1,"operations":[]}',
      /is not a manifest/,
    ],
  ])('%s', async (what, text, message) => {
    const path = join(folder, `${what.replaceAll(' ', '-')}.json`);
    if (text !== undefined) writeFileSync(path, text);
    const started = startNode(store, { TRUSTED_DOCUMENTS: path }).then(() => 'started');
    const told = await started.catch((error: Error) => error.message);
    expect(told).toMatch(/^.*TRUSTED_DOCUMENTS.*$/);
    expect(told).toContain(path);
    expect(told).toMatch(message);
  });
});
