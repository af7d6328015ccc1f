import pg from 'pg';
import { createOwnDatabase } from '../support/database.ts';
import { databaseForEach } from '../support/each.ts';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

/** What the process makes of more than it could hold. */
const database = databaseForEach(createOwnDatabase);

/** Animals whose names nobody could add any more, on either database. */
async function stock(count: number, length: number): Promise<void> {
  const { env } = database;
  const client = new pg.Client(
    'DATABASE_URL' in env ? env.DATABASE_URL : { host: env.DATA_DIR, user: 'postgres', database: 'postgres' },
  );
  await client.connect();
  const text = `insert into pet (name, category_id, status) select repeat('x', $2), 1, 'available' from generate_series(1, $1)`;
  await client.query(text, [count, length]);
  await client.end();
}

/** As many as fit into 16 MiB. */
const fitting = 16;
const tooLarge = 'What is read for this answer takes more than 33554432 bytes; ask for fewer items at a time.';
const busy = 'Too many large answers are under way; try again shortly.';

test('lists of 101 names of a megabyte, many at a time, neither end a process with a small heap nor keep others waiting', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others', LOG_LEVEL: 'silent' };
  // Nothing here is too late, however busy the machine is.
  const patience = { DATABASE_STATEMENT_TIMEOUT_MS: '600000' };
  const server = await startServer({ ...env, ...patience, NODE_OPTIONS: '--max-old-space-size=256' });
  await stock(101, 1_000_000);
  const { json } = await rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });

  const lists = Array.from({ length: 12 }, (_, at) => rest(server, `/v1/pets?limit=${89 + at}`));
  const aliases = Array.from({ length: 16 }, (_, at) => `a${at}: pets(limit: ${85 + at}) { id name }`);
  const query = graphqlText(server, { query: `{ ${aliases.join(' ')} }` });
  const others = Array.from({ length: 12 }, () => rest(server, `/v1/pets?after=${json.id - 1}&limit=1`));

  expect((await Promise.all(others)).map((one) => one.json)).toEqual(Array(12).fill([json]));
  // Each is a page, or told to come again: what is answered at a time is bounded.
  for (const { status, json } of await Promise.all(lists)) {
    expect(status === 200 ? json.length : json.message).toBe(status === 200 ? fitting : busy);
  }
  const { data, errors } = await query;
  expect(data).toBeNull();
  for (const { message } of errors ?? []) expect([tooLarge, busy]).toContain(message);
  expect((await rest(server, '/v1/pets?limit=10')).json).toHaveLength(10);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
