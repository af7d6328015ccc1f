import { readdirSync } from 'node:fs';
import { modelOf } from '../../src/mikro-orm.config.ts';
import { modules } from '../../src/modules.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();

test('the migrations build exactly the tables that the entities describe', async () => {
  expect(await store.database.orm.schema.getUpdateSchemaSQL()).toBe('');
  expect(await store.database.orm.migrator.checkSchema()).toBe(false);
});

test('every migration in the folder is listed by its name', () => {
  const files = readdirSync('migrations').filter((name) => name.endsWith('.ts'));
  expect(modelOf(modules).migrations.map(({ name }) => `${name}.ts`)).toEqual(files.sort());
});

test('migrations that were applied are not applied again', async () => {
  expect(await store.database.migrate()).toEqual([]);
});

test('a list by status is served by an index', async () => {
  const em = store.database.orm.em.fork();
  const indexes = await em.execute(`select indexdef from pg_indexes where tablename = 'pet'`);
  expect(indexes).toContainEqual({ indexdef: expect.stringContaining('(status, id)') });
});
