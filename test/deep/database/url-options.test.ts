import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { onPostgres } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const database = databaseForEach(createEmptyDatabase);

(onPostgres ? test : test.skip).each([
  ['options=-c%20search_path%3Dshop', 'shop'],
  ['options=-c+search_path%3Dshop&application_name=shop', 'shop'],
  ['options=-c%20statement_timeout%3D0%20-c%20jit%3Don', 'public'],
  ['statement_timeout=0&query_timeout=1&application_name=shop', 'public'],
])('?%s in DATABASE_URL counts, but for the time-out and jit=off (PostgreSQL only)', async (options, schema) => {
  const session = await openSession(database);
  await session.query('create schema shop');
  const url = new URL(urlOf(database));
  url.search = options;
  const env = { DATABASE_URL: url.href, DATABASE_STATEMENT_TIMEOUT_MS: '4321' };
  const store = await startStore(env, { database: { env: database.env, drop: async () => undefined } });
  const text = `select current_setting('search_path'), current_setting('statement_timeout'), current_setting('jit')`;
  expect(await sql(store.database, text)).toEqual([[expect.stringContaining(schema), '4321ms', 'off']]);
  expect((await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } })).status).toBe(201);
  // The migrations went there, too.
  expect((await session.query(`select name from ${schema}.pet`)).rows).toEqual([{ name: 'Rex' }]);
  await session.end();
  await store.close();
});
