import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Store, startStore } from '../support/store.ts';

let store: Store;
beforeAll(async () => {
  store = await startStore();
});
afterAll(() => store.close());

test('the migrations build exactly the tables that the entities describe', async () => {
  expect(await store.database.orm.schema.getUpdateSchemaSQL()).toBe('');
  expect(await store.database.orm.migrator.checkSchema()).toBe(false);
});

test('migrations that were applied are not applied again', async () => {
  expect(await store.database.migrate()).toEqual([]);
});

test('a list by status is served by an index', async () => {
  const em = store.database.orm.em.fork();
  const indexes = await em.execute(`select indexdef from pg_indexes where tablename = 'pet'`);
  expect(indexes).toContainEqual({ indexdef: expect.stringContaining('(status, id)') });
});
