import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { onPostgres } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { type Store, startStore } from '../../support/store.ts';

let database: TestDatabase;
let store: Store;
beforeEach(async () => {
  database = await createEmptyDatabase();
});
afterEach(() => store.close());

const onServer = onPostgres ? test : test.skip;

/** Starts with `?options=` in DATABASE_URL. */
async function startWith(options: string): Promise<void> {
  const url = new URL(urlOf(database));
  url.search = options;
  store = await startStore({ DATABASE_URL: url.href, DATABASE_STATEMENT_TIMEOUT_MS: '4321' }, { database });
}

function settings(): Promise<unknown> {
  const text = `select current_setting('search_path'), current_setting('statement_timeout'), current_setting('jit')`;
  return sql(store.database, text);
}

onServer.each(['options=-c%20search_path%3Dshop', 'options=-c+search_path%3Dshop&application_name=shop'])(
  '?%s in DATABASE_URL counts, and takes away neither the time-out nor jit=off (PostgreSQL only)',
  async (options) => {
    const session = await openSession(database);
    await session.query('create schema shop');
    await startWith(options);
    expect(await settings()).toEqual([['shop', '4321ms', 'off']]);
    expect((await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } })).status).toBe(201);
    // The migrations went there, too.
    expect((await session.query('select name from shop.pet')).rows).toEqual([{ name: 'Rex' }]);
    await session.end();
  },
);

onServer(
  'the time-out is that of DATABASE_STATEMENT_TIMEOUT_MS, whatever ?options= says (PostgreSQL only)',
  async () => {
    await startWith('options=-c%20statement_timeout%3D0%20-c%20jit%3Don');
    expect(await settings()).toEqual([[expect.any(String), '4321ms', 'off']]);
  },
);

onServer('nor does ?statement_timeout= take it away (PostgreSQL only)', async () => {
  await startWith('statement_timeout=0&query_timeout=1&application_name=shop');
  expect(await settings()).toEqual([[expect.any(String), '4321ms', 'off']]);
});
