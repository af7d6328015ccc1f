import { sentDuring, sql } from '../support/database-access.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

/** How much travels together, in bytes: what the statements hold, and what their answers will. */

let store: Store;
beforeAll(async () => {
  store = await startStore();
});
beforeEach(() => sql(store.database, 'truncate pet restart identity'));
afterAll(() => store.close());

const mebibyte = 1024 * 1024;

function stock(count: number, length: number): Promise<unknown> {
  const text = `insert into pet (name, category_id, status) select repeat('x', $2), 1, 'available' from generate_series(1, $1)`;
  return sql(store.database, text, [count, length]);
}

test('creations that arrive together are written by the mebibyte, and all are stored', async () => {
  await onNode(store, { TEXT_MAX_LENGTH: '300000' }, async (node) => {
    const names = Array.from({ length: 24 }, (_, at) => `${at} `.padEnd(300_000, 'x'));
    const create = (name: string) => rest(node, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
    const sent = await sentDuring(store.database, async () => {
      const created = await Promise.all(names.map(create));
      expect(created.map(({ status }) => status)).toEqual(names.map(() => 201));
    });
    const written = sent.filter(({ name }) => name === 'insert_pet').map(({ values }) => values[0] as string[]);
    expect(written.flat().sort()).toEqual([...names].sort());
    for (const batch of written) expect(batch.join('').length).toBeLessThanOrEqual(mebibyte);
  });
});

test('an animal that is larger than a batch is written alone', async () => {
  await onNode(store, { TEXT_MAX_LENGTH: '1000000', BODY_LIMIT_BYTES: '4194304' }, async (node) => {
    const name = '€'.repeat(1_000_000);
    const { json } = await rest(node, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
    expect((await rest(node, '/v1/pets')).json).toEqual([json]);
    expect(json.name).toBe(name);
  });
});

test('lists that arrive together are read by what pages took lately', async () => {
  await stock(200, 40_000);
  // An engine that refuses several lists in one statement refuses them once.
  await Promise.all([0, 1, 2, 3].map((after) => rest(store, `/v1/pets?limit=1&after=${after}`)));
  // Nobody can foresee the first.
  expect((await rest(store, '/v1/pets?limit=50')).json).toHaveLength(50);
  const sent = await sentDuring(store.database, async () => {
    const lists = Array.from({ length: 32 }, (_, after) => rest(store, `/v1/pets?limit=50&after=${after}`));
    expect((await Promise.all(lists)).map(({ json }) => json.length)).toEqual(Array(32).fill(50));
  });
  const limits = sent.filter(({ name }) => name.startsWith('list_')).map(({ values }) => [values[1]].flat());
  expect(limits.flat()).toHaveLength(32);
  for (const batch of limits) {
    const animals = (batch as number[]).reduce((sum, limit) => sum + limit, 0);
    expect(animals * 40_000).toBeLessThan(20 * mebibyte);
  }
});

test('after long names, lists of short ones are not taken for long: nobody is turned away', async () => {
  await stock(1, 1_000_000);
  await stock(200, 5);
  expect((await rest(store, '/v1/pets?limit=1')).json).toHaveLength(1);
  // As large as the first, these would be three gigabytes.
  const lists = Array.from({ length: 32 }, (_, at) => rest(store, `/v1/pets?limit=100&after=${at + 1}`));
  expect((await Promise.all(lists)).map(({ status }) => status)).toEqual(Array(32).fill(200));
});
