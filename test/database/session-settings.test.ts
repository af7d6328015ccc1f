// runs: postgres

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { optionsFor } from '../support/database.ts';
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

test('two statements of one name are two', async () => {
  for (const value of ['1', '2', '1']) {
    const text = `select ${value}::text`;
    const statement = { name: 'test name', text };
    expect(await store.database.rows(statement, [])).toEqual([[value]]);
  }
});

test('a server that fails while TLS is negotiated cannot be reached now', async () => {
  const server = createServer((socket) =>
    socket.on('error', () => undefined).once('data', () => socket.end('E')),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `postgres://user@127.0.0.1:${port}/store?sslmode=require`;
  const options = await optionsFor({ DATABASE_URL: url });
  const database = await Database.open(options, modelOf(store.modules));
  try {
    await expect(database.ping()).rejects.toMatchObject({
      message: 'The database cannot be reached; try again shortly.',
    });
  } finally {
    await database.close();
    server.close();
  }
});
