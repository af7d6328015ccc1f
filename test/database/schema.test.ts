import { readdirSync } from 'node:fs';
import { modelOf } from '../../src/modules/mikro-orm.config.ts';
import { modules } from '../../src/modules/modules.ts';
import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();

test('the migrations build exactly the tables that the entities describe', async () => {
  expect(await store.database.orm.schema.getUpdateSchemaSQL()).toBe('');
  expect(await store.database.orm.migrator.checkSchema()).toBe(false);
});

test('every migration in the folder is listed by its name', () => {
  const files = readdirSync('migrations').filter((name) =>
    name.endsWith('.ts'),
  );
  expect(modelOf(modules).migrations.map(({ name }) => `${name}.ts`)).toEqual(
    files.sort(),
  );
});

test('a list by status is served by an index', async () => {
  const indexes = await sql(
    store.database,
    `select indexdef from pg_indexes where tablename = 'pet'`,
  );
  expect(indexes).toContainEqual([expect.stringContaining('(status, id)')]);
});
