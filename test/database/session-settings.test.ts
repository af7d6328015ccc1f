// runs: postgres

import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { onPlainPostgres } from '../support/process.ts';
import { storeForAll } from '../support/store.ts';

/** What a role or a database may set, and a value's text depends on. */

const store = storeForAll();

const testOnPostgres = onPlainPostgres ? test : test.skip;

testOnPostgres.each([
  ['extra_float_digits', '1'],
  ['DateStyle', 'ISO, MDY'],
])('a session sets %s itself', async (name, value) => {
  const [[source, setting] = []] = await sql<[string, string]>(
    store.database,
    `select source, current_setting(name) from pg_settings where name = '${name}'`,
  );
  expect([source, setting]).toEqual(['client', value]);
});
