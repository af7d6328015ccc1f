import { createTestDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import { cli, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const BOOTSTRAP_API_KEY = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createTestDatabase);
const env = () => ({ ...database.env, BOOTSTRAP_API_KEY });
const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

/** As `\copy` does it: the rows have their ids, and nobody tells the counter. */
async function moveByHand(ids: Array<number | bigint>): Promise<void> {
  const { database: node } = await openNode(database);
  for (const id of ids) {
    await sql(node, `insert into pet (id, name, category_id, status) values ($1, 'moved', 1, 'sold')`, [`${id}`]);
  }
  await node.close();
}

test('rows moved by hand into a running service make it not ready, and `migrate` sets the counter', async () => {
  const server = await startServer(env());
  await moveByHand([1, 2, 3]);
  const { status, text } = await send(server.origin, { path: '/readyz' });
  expect({ status, ...JSON.parse(text) }).toEqual({
    status: 503,
    code: 'SERVICE_UNAVAILABLE',
    message: 'Every creation fails: the ids of pet are behind its rows. Run `migrate`.',
  });
  const migrated = await cli(['migrate'], env());
  expect(migrated).toMatchObject({ code: 0, stdout: 'the database is up to date\n' });
  expect(migrated.stderr).toMatch(
    /^animal-store: the counter of ids was behind the rows.*\(table: pet, greatest: 3\)\n$/,
  );
  expect((await send(server.origin, { path: '/readyz' })).status).toBe(200);
  expect((await rest(server, '/v1/pets', newPet)).json).toMatchObject({ id: 4 });
});

test('ids beyond 2^62 move the counter, too: readers that have passed them meet what comes next', async () => {
  expect(await cli(['migrate'], env())).toMatchObject({ code: 0 });
  const greatest = 2n ** 62n + 5n;
  await moveByHand([1, greatest]);
  const server = await startServer(env());
  expect((await rest(server, '/v1/pets', newPet)).text).toContain(`"id":${greatest + 1n}`);
});

test('the least int64, which no list can contain, cannot be found either', async () => {
  expect(await cli(['migrate'], env())).toMatchObject({ code: 0 });
  const least = -(2n ** 63n);
  await moveByHand([least, least + 1n]);
  const server = await startServer(env());
  expect((await rest(server, '/v1/pets')).text).toMatch(/^\[\{"id":-9223372036854775807,/);
  expect((await rest(server, `/v1/pets/${least}`)).status).toBe(404);
  expect((await rest(server, `/v1/pets/${least + 1n}`)).status).toBe(200);
});

test('a start sets the counter, and a row at the end of the range does not use it up', async () => {
  expect(await cli(['migrate'], env())).toMatchObject({ code: 0 });
  await moveByHand([1, 70, 9223372036854775807n]);
  const server = await startServer(env());
  expect((await rest(server, '/v1/pets', newPet)).json).toMatchObject({ id: 71 });
});
