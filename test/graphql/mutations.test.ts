import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { graphqlText } from '../support/graphql.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

let store: Store;
beforeAll(async () => {
  store = await startStore();
});
beforeEach(() => store.empty());
afterAll(() => store.close());

const good = 'createPet(input: { name: "Rex", categoryId: 1 }) { id }';
const bad = 'createPet(input: { name: "Tom", categoryId: "five" }) { id }';

// Compiled from the second time on: every time must be like the first.
test.each([
  ['beside each other', `mutation { a: ${bad} b: ${good} }`],
  ['in fragments', `mutation { ...A ...B } fragment A on Mutation { a: ${bad} } fragment B on Mutation { b: ${good} }`],
  ['in one fragment', `mutation { ... { a: ${bad} b: ${good} } }`],
])('after a mutation that failed the next one is not run, %s', async (_, query) => {
  for (let time = 1; time <= 4; time++) {
    expect(await graphqlText(store, { query })).toMatchObject({ data: null, errors: [{ path: ['a'] }] });
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  }
});

test('mutations before the one that failed stay done', async () => {
  for (let time = 1; time <= 3; time++) {
    await graphqlText(store, { query: `mutation { b: ${good} a: ${bad} }` });
    expect((await rest(store, '/v1/pets')).json).toHaveLength(time);
  }
});
