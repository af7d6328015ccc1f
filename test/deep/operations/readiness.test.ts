// runs: embedded, postgres

import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import {
  bootstrapKey,
  cli,
  eventually,
  onPostgres,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import {
  createRole,
  endSessions,
  openSession,
  type TestRole,
  urlOf,
} from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const database = databaseForEach(createEmptyDatabase);
// Dropped after the database, which the role owns.
let role: TestRole | undefined;
afterEach(async () => {
  await role?.drop();
  role = undefined;
});

async function readiness({ origin }: { origin: string }) {
  const { status, headers, text } = await send(origin, { path: '/readyz' });
  return { status, retryAfter: headers['retry-after'], body: JSON.parse(text) };
}
const notReady = (message: string) => ({
  status: 503,
  retryAfter: '1',
  body: { code: 'SERVICE_UNAVAILABLE', status: 503, message },
});

const onServer = onPostgres ? describe : describe.skip;

onServer(
  'on PostgreSQL (the embedded store is never a standby, and has one role)',
  () => {
    test('a server is not ready while its database is read-only, like a standby', async () => {
      const server = await startServer(database.env);
      const session = await openSession(database);
      const name = new URL(urlOf(database)).pathname.slice(1);
      await session.query(
        `alter database ${name} set default_transaction_read_only = on`,
      );
      await endSessions(session);
      const readOnly = 'The database is read-only; it may be a standby.';
      await eventually(
        async () => (await readiness(server)).body.message === readOnly,
      );
      expect(await readiness(server)).toEqual(notReady(readOnly));
      await session.query(
        `set default_transaction_read_only = off; alter database ${name} reset all`,
      );
      await endSessions(session);
      await eventually(async () => (await readiness(server)).status === 200);
      await session.end();
    });

    test('a server is not ready while its role lacks a right', async () => {
      role = await createRole(database);
      const server = await startServer({ DATABASE_URL: role.url });
      const session = await openSession(database);
      const { name } = role;
      for (const [taken, back] of [
        ['insert on pet', 'insert on pet'],
        ['all on sequence pet_id_seq', 'usage on sequence pet_id_seq'],
        ['select on mikro_orm_migrations', 'select on mikro_orm_migrations'],
      ]) {
        await session.query(`revoke ${taken} from ${name}`);
        expect(await readiness(server)).toEqual(
          notReady(
            'The role in DATABASE_URL may not read and write all tables.',
          ),
        );
        await session.query(`grant ${back} to ${name}`);
      }
      expect((await readiness(server)).status).toBe(200);
      await session.end();
    });
  },
);

const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const started = () =>
  startStore(
    {},
    { database: { env: database.env, drop: async () => undefined } },
  );

/**
 * Inserts rows with their ids, as `\\copy` does, which does not advance the
 * counter.
 */
async function moveByHand(ids: Array<number | bigint>): Promise<void> {
  const { database: node } = await openNode(database);
  await node.migrate();
  for (const id of ids) {
    await sql(
      node,
      `insert into pet (id, name, category_id, status) values ($1, 'moved', 1, 'sold')`,
      [`${id}`],
    );
  }
  await node.close();
}

test('a running service is not ready after rows were moved into it by hand, until `migrate` sets the counter', async () => {
  const server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
  });
  await moveByHand([1, 2, 3]);
  const behind =
    'Every creation fails: the ids of pet are behind its rows. Run `migrate`.';
  expect(await readiness(server)).toEqual(notReady(behind));
  const migrated = await cli(['migrate'], database.env);
  expect(migrated).toMatchObject({
    code: 0,
    stdout: 'the database is up to date\n',
  });
  expect(migrated.stderr).toMatch(
    /^animal-store: the id counter was behind the rows.*\(table: pet, greatest: 3\)\n$/,
  );
  expect((await readiness(server)).status).toBe(200);
  expect((await rest(server, '/v1/pets', newPet)).json).toMatchObject({
    id: 4,
  });
});

test.each([
  [
    'even beyond 2^62, so that readers that have passed them find later animals',
    [1, 2n ** 62n + 5n],
    2n ** 62n + 6n,
  ],
  [
    'except a row at the end of the range, which would leave no ids',
    [1, 70, 2n ** 63n - 1n],
    71n,
  ],
])('a start sets the counter past the ids, %s', async (_range, ids, next) => {
  await moveByHand(ids);
  const store = await started();
  expect((await rest(store, '/v1/pets', newPet)).text).toContain(
    `"id":${next},`,
  );
  await store.close();
});

test('an animal with the least int64 as its id is neither listed nor found', async () => {
  const least = -(2n ** 63n);
  await moveByHand([least, least + 1n]);
  const store = await started();
  expect((await rest(store, '/v1/pets')).text).toMatch(
    /^\[\{"id":-9223372036854775807,/,
  );
  expect((await rest(store, `/v1/pets/${least}`)).status).toBe(404);
  expect((await rest(store, `/v1/pets/${least + 1n}`)).status).toBe(200);
  await store.close();
});
