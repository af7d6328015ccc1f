import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '../support/database.ts';
import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, startNode } from '../support/nodes.ts';
import { startAndFail } from '../support/process.ts';
import { type Store, startStore } from '../support/store.ts';

const list = 'query List($limit: Int) { pets(limit: $limit) { id } }';
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
  writeFileSync(manifest, JSON.stringify({ [sha1(list)]: list, [sha256(create)]: create }));
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
  ["the SHA-256 as Apollo's clients send it", { extensions: persisted(sha256(list)), variables }],
  ['the exact text', { query: list, variables }],
  ['text and hash', { query: list, documentId: sha1(list), extensions: persisted(sha256(list)), variables }],
  ['an operation name', { documentId: sha1(list), operationName: 'List', variables }],
])('a trusted document is run by %s, with POST and GET', async (_how, request) => {
  for (let time = 0; time < 3; time += 1) expect(await graphqlText(node, request)).toMatchObject(one);
  expect(await get(request)).toMatchObject(one);
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
  '',
  'null',
  '1',
  '"text"',
  '[]',
  `[{"documentId":"${sha1(list)}"}]`,
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

test('a text that is no string beside a trusted hash never runs as a text', async () => {
  for (const query of [1, ['{ pets { id } }'], { toString: 1 }]) {
    expect((await graphqlText(node, { query, documentId: sha1(list) })).status).toBe(400);
  }
});

test('a trusted mutation is still none for GET, and a key is still needed', async () => {
  expect(await get({ documentId: sha256(create) })).toMatchObject({ status: 405 });
  expect((await graphqlText(node, { documentId: sha1(list) }, null)).status).toBe(401);
});

describe('a manifest that cannot be used stops the start with one readable line', () => {
  test.each<[string, string | undefined, RegExp]>([
    ['missing', undefined, /cannot be read: ENOENT/],
    ['no JSON', 'query { pets { id } }', /is not a manifest: a JSON object of hash -> document/],
    ['null', 'null', /is not a manifest/],
    ['a number', '5', /is not a manifest/],
    ['an array', '["{ pets { id } }"]', /is not a manifest/],
    [
      'of another kind',
      '{"format":"apollo-persisted-query-manifest","version":1,"operations":[]}',
      /is not a manifest/,
    ],
  ])('%s', async (what, text, message) => {
    const path = join(folder, `${what.replaceAll(' ', '-')}.json`);
    if (text !== undefined) writeFileSync(path, text);
    const database = await createTestDatabase();
    const { code, stderr } = await startAndFail({ ...database.env, TRUSTED_DOCUMENTS: path });
    await database.drop();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^animal-store: .*TRUSTED_DOCUMENTS.*\n$/);
    expect(stderr).toContain(path);
    expect(stderr).toMatch(message);
  });
});
