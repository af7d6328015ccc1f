import { sentDuring, sql, stockNames } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode, startNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

/** How large an answer may be, on a node where that is a mebibyte: 50 animals of 10,000 letters are half of it. */

let store: Store;
let node: ServiceNode;
beforeAll(async () => {
  store = await startStore({ RESPONSE_LIMIT_BYTES: '1048576' });
  await stockNames(store.database, Array(60).fill('x'.repeat(10_000)));
  await sql(store.database, `update pet set status = 'sold' where id > 55`);
  await stockNames(store.database, Array(20).fill('y'.repeat(50_000)));
  node = await startNode(store, { RESPONSE_LIMIT_BYTES: '1048576', TEXT_MAX_LENGTH: '100000' });
});
afterAll(async () => {
  await node.close();
  await store.close();
});

const message = 'What is read for this answer takes more than 1048576 bytes; ask for fewer items at a time.';
const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');

/** Interpreted, compiled, and from the cache: the same. */
async function ask(query: string, variables = {}) {
  const answers = [];
  for (let time = 0; time < 3; time += 1) answers.push(await graphqlText(node, { query, variables }));
  const [first] = answers as [(typeof answers)[number]];
  for (const answer of answers) {
    expect([answer.status, answer.data, answer.errors]).toEqual([first.status, first.data, first.errors]);
    expect(answer.headers).not.toHaveProperty('retry-after');
  }
  return first;
}

test.each([
  ['two lists of a half', '{ a: pets(limit: 50) { id name } b: pets(limit: 49, after: "1") { id name } }'],
  ['a list without its names', '{ pets(limit: 50) { id } a: pets(limit: 50) { id } }'],
  ['a list whose short fields have aliases', '{ pets(limit: 20) { a: id b: status c: categoryId } }'],
])('what fits is answered: %s', async (_what, query) => {
  const { data, errors, text } = await ask(query);
  expect(errors).toBeUndefined();
  expect(text.length).toBeLessThan(1_048_576);
  for (const list of Object.values(data)) expect(list).toMatchObject({ length: expect.any(Number) });
});

test.each([
  ['three lists', '{ a: pets(limit: 50) { name } b: pets(limit: 50) { name } c: pets(limit: 50) { name } }'],
  ['three different lists', `{ ${times(3, (at) => `a${at}: pets(limit: ${50 - at}) { name }`)} }`],
  [
    'lists of either kind',
    '{ pets(limit: 50) { name } a: pets(limit: 49) { id } petsConnection(first: 48) { edges { cursor } } }',
  ],
  ['one list, its names by aliases', '{ pets(limit: 50) { name a: name b: name } }'],
  ['one animal, its name by aliases', `{ pet(id: 61) { ${times(30, (at) => `a${at}: name`)} } }`],
  [
    'a list, its names by the aliases of a fragment',
    '{ pets(limit: 50) { ...F } } fragment F on Pet { a: name ...G } fragment G on Pet { b: name c: name }',
  ],
  [
    // Seven times six names, of fourteen aliases.
    'a fragment with aliases, under aliases',
    `{ petsConnection(first: 6) { ${times(7, (at) => `e${at}: edges { node { ...F } }`)} } }
     fragment F on Pet { ${times(6, (at) => `n${at}: name`)} }`,
  ],
])('%s that would be too large are refused', async (_what, query) => {
  const { data, errors } = await ask(query);
  // Of what may be null, only that is.
  expect(data).toEqual(query.startsWith('{ pet(') ? { pet: null } : null);
  expect(errors?.map(({ message, extensions }) => ({ message, extensions }))).toEqual([
    { message, extensions: { code: 'BAD_USER_INPUT', status: 400 } },
  ]);
});

test('a page holds as many animals as fit, and the next one goes on after them', async () => {
  const lengths = [];
  let path: string | undefined = '/v1/pets?limit=100';
  while (path) {
    const { json, headers, text } = await rest(node, path);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
    lengths.push(json.length);
    path = /<[^>]*(\/v1[^>]*)>/.exec(`${headers.link}`)?.[1];
  }
  // 60 of 10,000 letters and 8 of 50,000; then the other 12.
  expect(lengths).toEqual([68, 12]);
  const query = '{ petsConnection(first: 100) { edges { node { id } } pageInfo { hasNextPage } } }';
  const { data } = await ask(query);
  expect(data.petsConnection).toMatchObject({ edges: { length: 68 }, pageInfo: { hasNextPage: true } });
});

test('sizes are those of UTF-8, not of JavaScript’s strings', async () => {
  await onNode(store, { RESPONSE_LIMIT_BYTES: '1048576' }, async (small) => {
    await stockNames(store.database, Array(60).fill('猫'.repeat(10_000)));
    const { json, text } = await rest(small, '/v1/pets?limit=60&after=80');
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
    expect(json).toHaveLength(34);
    await sql(store.database, 'delete from pet where id > 80');
  });
});

test('animals one by one are refused for their size, and never as if the database were away', async () => {
  // Which of them still fit is a matter of chance.
  const query = `{ ${times(40, (at) => `a${at}: pet(id: ${61 + (at % 20)}) { name }`)} }`;
  const { errors } = await graphqlText(node, { query });
  expect(new Set(errors?.map(({ message }) => message))).toEqual(new Set([message]));
});

test('once the answer is too large nothing more is read for it', async () => {
  const query = `{ ${times(16, (at) => `a${at}: pets(after: 60, limit: ${at + 4}) { name }`)} }`;
  for (let time = 0; time < 3; time += 1) {
    const sent = await sentDuring(store.database, async () => {
      const { data, errors } = await graphqlText(node, { query });
      expect([data, errors?.[0]?.message]).toEqual([null, message]);
    });
    // Lists of such names are read one after the other; four of them are more than enough.
    expect(sent.filter(({ name }) => name.startsWith('list_long_pet')).length).toBeLessThanOrEqual(5);
  }
});

test('an animal whose answer would be too large is not stored', async () => {
  const query = `mutation ($name: String!) { createPet(input: { name: $name, categoryId: 1, status: pending }) { ${times(12, (at) => `a${at}: name`)} } }`;
  const { data, errors } = await ask(query, { name: 'z'.repeat(100_000) });
  expect([data, errors?.[0]?.message]).toEqual([null, message]);
  expect((await rest(store, '/v1/pets?status=pending')).json).toEqual([]);
});
