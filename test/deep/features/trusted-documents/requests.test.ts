import { hash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stock } from '../../../support/database-access.ts';
import { newFolder } from '../../../support/folder.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { send } from '../../../support/http.ts';
import { afterAll, expect, test } from '../../../support/jest.ts';
import {
  type ServiceNode,
  startNode,
  storeForAll,
} from '../../../support/store.ts';

const list = 'query List($limit: Int) { pets(limit: $limit) { id } }';
const find = 'query Find { pet(id: "1") { id } }';
const create =
  'mutation Create { createPet(input: { name: "x", categoryId: 1 }) { id } }';
const sha256 = (text: string) => hash('sha256', text);
/** The hash of codegen's client preset: SHA-1 by default. */
const sha1 = (text: string) => hash('sha1', text);
const persisted = (sha256Hash: unknown) => ({
  persistedQuery: { version: 1, sha256Hash },
});

let folder: string;
let node: ServiceNode;
// Registered first, so that the node closes before the store.
afterAll(async () => {
  await node.close();
  rmSync(folder, { recursive: true });
});
const store = storeForAll({}, async () => {
  await stock(store.database, 2);
  folder = await newFolder();
  const path = join(folder, 'persisted-documents.json');
  const manifest = {
    [sha1(list)]: list,
    [sha256(create)]: create,
    [`sha256:${sha256(find)}`]: find,
  };
  writeFileSync(path, JSON.stringify(manifest));
  node = await startNode(store, { TRUSTED_DOCUMENTS: path });
});

async function get(parameters: Record<string, unknown>) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    search.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  const headers = {
    authorization: `Bearer ${node.key}`,
    'apollo-require-preflight': 'true',
  };
  const { status, text } = await send(node.origin, {
    path: `/graphql?${search}`,
    headers,
  });
  return { status, ...JSON.parse(text) };
}

/** Sends a request by GET, and by POST until it is compiled and cached. */
async function responsesTo(request: Record<string, unknown>) {
  const responses = [await get(request)];
  for (let time = 0; time < 3; time += 1)
    responses.push(await graphqlText(node, request));
  return responses;
}

const variables = { limit: 1 };
const pets = { status: 200, data: { pets: [{ id: '1' }] } };
const animal = { status: 200, data: { pet: { id: '1' } } };

test.each<[string, object, Record<string, unknown>]>([
  [
    'the hash of the manifest as documentId',
    pets,
    { documentId: sha1(list), variables },
  ],
  ['its SHA-256 as documentId', pets, { documentId: sha256(list), variables }],
  [
    'the same as a document identifier',
    pets,
    { documentId: `sha256:${sha256(list)}`, variables },
  ],
  [
    "the SHA-256 as Apollo's clients send it",
    pets,
    { extensions: persisted(sha256(list)), variables },
  ],
  ['the exact text', pets, { query: list, variables }],
  [
    'text and hash',
    pets,
    {
      query: list,
      documentId: sha1(list),
      extensions: persisted(sha256(list)),
      variables,
    },
  ],
  [
    'text and identifier',
    pets,
    { query: list, documentId: `sha256:${sha256(list)}`, variables },
  ],
  [
    'an operation name',
    pets,
    { documentId: sha1(list), operationName: 'List', variables },
  ],
  [
    'the identifier of the manifest',
    animal,
    { documentId: `sha256:${sha256(find)}` },
  ],
  ['the hash of that alone', animal, { documentId: sha256(find) }],
])(
  'a trusted document runs by %s, with POST and GET',
  async (_how, expected, request) => {
    for (const response of await responsesTo(request))
      expect(response).toMatchObject(expected);
  },
);

const refusedWith = (message: string) => ({
  status: 403,
  errors: [
    { message, extensions: { code: 'OPERATION_NOT_TRUSTED', status: 403 } },
  ],
});

test('a text and a documentId must be the same document', async () => {
  const refused = refusedWith(
    '`query` and `documentId` are different documents: send one of them.',
  );
  for (const documentId of [`sha256:${sha256(create)}`, sha256('nothing'), 5]) {
    for (const response of await responsesTo({ query: list, documentId }))
      expect(response).toMatchObject(refused);
  }
});

test('without registered documents the error names the setting', async () => {
  const message = 'No documents are registered here: send the text as `query`.';
  const errors = [
    {
      message,
      extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED', status: 400 },
    },
  ];
  expect(
    await graphqlText(store, { documentId: `sha256:${sha256(list)}` }),
  ).toMatchObject({ status: 400, errors });
});

test.each<[string, Record<string, unknown>]>([
  ['one more space', { query: `${list} ` }],
  ['introspection', { query: '{ __schema { queryType { name } } }' }],
  [
    'a trusted hash and another text',
    { documentId: sha1(list), query: '{ pets { id } }' },
  ],
  [
    "Apollo's trusted hash and another text",
    { extensions: persisted(sha256(list)), query: '{ pets { id } }' },
  ],
  ['an unknown hash', { documentId: sha256('{ pets { id } }') }],
  [
    'an identifier in capital letters',
    { documentId: `sha256:${sha256(list).toUpperCase()}` },
  ],
  ['another kind of identifier', { documentId: `x-sha256:${sha256(list)}` }],
  ['the prefix before another hash', { documentId: `sha256:${sha1(list)}` }],
  ['the name of an inherited member', { documentId: '__proto__' }],
  ['nothing', { variables }],
  ['an empty text', { query: '' }],
])('%s is refused, with POST and GET', async (_what, request) => {
  const refused = refusedWith(
    'Only operations that were registered beforehand are run here.',
  );
  for (const response of await responsesTo(request))
    expect(response).toMatchObject(refused);
});

test.each<[string, number, string]>([
  ['{"documentId":{"toString":1}}', 403, 'OPERATION_NOT_TRUSTED'],
  [`{"documentId":["${sha1(list)}"]}`, 403, 'OPERATION_NOT_TRUSTED'],
  ['{"extensions":null}', 403, 'OPERATION_NOT_TRUSTED'],
  ['{"extensions":{"persistedQuery":null}}', 403, 'OPERATION_NOT_TRUSTED'],
  [
    '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":{"toString":null}}}}',
    403,
    'OPERATION_NOT_TRUSTED',
  ],
  [
    `{"documentId":"${sha1(list)}","query":["{ pets { id } }"]}`,
    400,
    'BAD_USER_INPUT',
  ],
  ['null', 400, 'BAD_USER_INPUT'],
  [`[{"documentId":"${sha1(list)}"}]`, 400, 'BAD_USER_INPUT'],
])('the body %j is refused with %d', async (body, expected, code) => {
  const { status, errors } = await graphqlText(node, body);
  expect({ status, code: errors?.[0]?.extensions.code }).toEqual({
    status: expected,
    code,
  });
});

test('a trusted mutation is refused by GET, and a trusted document without a key', async () => {
  for (const documentId of [sha256(create), `sha256:${sha256(create)}`]) {
    expect(await get({ documentId })).toMatchObject({ status: 405 });
  }
  expect(
    (await graphqlText(node, { documentId: sha1(list) }, null)).status,
  ).toBe(401);
});

const apollo = JSON.stringify({
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: [{ id: 'the-list', name: 'List', type: 'query', body: list }],
});
const marked = Buffer.from(`\ufeff${apollo}`, 'utf16le');

test.each<[string, string | Buffer, string]>([
  ["Apollo's", apollo, 'the-list'],
  ["Apollo's with a mark", `\ufeff${apollo}`, 'the-list'],
  ["Apollo's in UTF-16", marked, sha256(list)],
  ["Relay's", JSON.stringify({ [hash('md5', list)]: list }), hash('md5', list)],
])('%s manifest is read', async (what, manifest, documentId) => {
  const path = join(folder, `${what}.json`);
  writeFileSync(path, manifest);
  const other = await startNode(store, { TRUSTED_DOCUMENTS: path });
  const bodies = [
    { documentId },
    { extensions: persisted(documentId) },
    { query: list },
  ];
  for (const body of bodies)
    expect((await graphqlText(other, body)).errors).toBeUndefined();
  const refused = await graphqlText(other, { query: find });
  expect(refused.errors?.[0]?.extensions.code).toBe('OPERATION_NOT_TRUSTED');
  await other.close();
});

/**
 * `test/deep/operations/start-failure.test.ts` tests the output of the process.
 */
test.each<[string, string | undefined, RegExp]>([
  ['missing', undefined, /cannot be read: ENOENT/],
  ['no JSON', 'query { pets { id } }', /is not JSON: Unexpected token/],
  ['cut', '{\n"a": "{ b }",\n', /is not JSON: .* \(line 3 column 1\)/],
  ['a list of operations without ids', '{"operations":[{}]}', /is not a manif/],
  ['null', 'null', /is not a manifest/],
  ['an array', '["{ pets { id } }"]', /is not a manifest/],
  [
    'an identifier of another text',
    '{"sha256:abc":"{__typename}"}',
    /under sha256:abc whose SHA-256 is ecf4/,
  ],
  [
    'of another kind',
    '{"format":"another","version":1}',
    /is not a manifest: a JSON object of hash -> document/,
  ],
])(
  'a manifest that is %s stops the start with one readable line',
  async (what, text, message) => {
    const path = join(folder, `${what.replaceAll(' ', '-')}.json`);
    if (text !== undefined) writeFileSync(path, text);
    const started = startNode(store, { TRUSTED_DOCUMENTS: path }).then(
      () => 'started',
    );
    const output = await started.catch((error: Error) => error.message);
    expect(output).toMatch(/^.*TRUSTED_DOCUMENTS.*$/);
    expect(output).toContain(path);
    expect(output).toMatch(message);
  },
);
