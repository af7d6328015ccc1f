import { buildApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import { modelOf } from '../../src/mikro-orm.config.ts';
import { modules } from '../../src/modules.ts';
import { Database } from '../../src/storage/database/database.ts';
import { citusLayout, nodesOf } from '../support/citus.ts';
import { createEmptyDatabase } from '../support/database.ts';
import { sentDuring, sql, stock } from '../support/database-access.ts';
import { databaseForEach } from '../support/each.ts';
import { describe, expect, test } from '../support/jest.ts';
import { cli, freePort, onPostgres, run } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { openSession, urlOf } from '../support/session.ts';
import { startStore } from '../support/store.ts';

const database = databaseForEach(createEmptyDatabase);
const distribute = (...options: string[]) => cli(['distribute', ...options], database.env);

describe('distribute, where there is nothing to distribute over', () => {
  const title = citusLayout ? test.skip : test;
  title('it refuses a database without Citus, and the embedded store, and migrates neither', async () => {
    const why = onPostgres
      ? /^animal-store: There is no Citus in this database/
      : /^animal-store: The embedded store is one node/;
    expect(await distribute('--reference')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(why) });
    expect((await cli(['migrate'], database.env)).stdout).toMatch(/^applied: /);
  });

  test('it wants one of its two options', async () => {
    for (const options of [[], ['--reference', '--shards', '8'], ['--shards', '0'], ['--shards', 'many']]) {
      expect(await distribute(...options)).toMatchObject({ code: 2, stdout: '' });
    }
  });
});

(citusLayout ? describe : describe.skip)('on a Citus cluster (skipped without TEST_CITUS)', () => {
  const sharedTables = ['api_key', 'deprecated_call', 'idempotency_key', 'key_event'];
  const shared = (when: string) => sharedTables.map((name) => `${name}: ${when} a reference table\n`).join('');

  test('distribute migrates, says what it did, and can be run again', async () => {
    const [first, second] = [await distribute('--shards', '4'), await distribute('--shards', '4')];
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toBe(`${shared('now')}pet: now distributed by id over 4 shards\n`);
    expect(second.stdout).toBe(`${shared('already')}pet: already distributed by id over 4 shards\n`);
  });

  test('two at once distribute once', async () => {
    const [one, other] = await Promise.all([distribute('--reference'), distribute('--reference')]);
    expect([one.code, other.code]).toEqual([0, 0]);
    const count = 'pet: now a reference table';
    expect([one, other].filter(({ stdout }) => stdout.includes(count))).toHaveLength(1);
  });

  test('a table that is distributed in another way stays, and the refusal says what changes it', async () => {
    await distribute('--shards', '4');
    expect(await distribute('--reference')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining("select undistribute_table('pet');"),
    });
    const { stderr } = await distribute('--shards', '8');
    const remedy = "select alter_distributed_table('pet', shard_count := 8)";
    expect(stderr).toContain(remedy);
    const session = await openSession(database);
    await session.query(remedy).finally(() => session.end());
    expect((await distribute('--shards', '8')).stdout).toContain('pet: already distributed by id over 8 shards');
  });

  test('a migration may alter tables that are distributed', async () => {
    for (const layout of [['--reference'], ['--shards', '4']]) {
      const given = { env: database.env, drop: async () => undefined };
      await distribute(...layout);
      const store = await startStore({}, { database: given });
      await sql(store.database, 'alter table pet add column if not exists note text null');
      await sql(store.database, 'create index if not exists pet_note_index on pet (note, id)');
      expect((await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } })).status).toBe(
        201,
      );
      await store.close();
      const session = await openSession(database);
      await session.query("select undistribute_table('pet')").finally(() => session.end());
    }
  });

  test.each([
    { layout: ['--reference'], isOneStatement: true },
    { layout: ['--shards', '4'], isOneStatement: false },
  ])('different lists at the same time are all answered: $layout', async ({ layout, isOneStatement }) => {
    await distribute(...layout);
    const store = await startStore({}, { database: { env: database.env, drop: async () => undefined } });
    await stock(store.database, 50);
    const paths = [0, 5, 10, 15, 20, 25, 30, 35].map((after) => `/v1/pets?limit=10&after=${after}`);
    const all = () => Promise.all([...paths, ...paths].map((path) => rest(store, path)));
    await all();
    const sent = await sentDuring(store.database, async () => {
      for (const [at, { status, json }] of (await all()).entries()) {
        expect(status).toBe(200);
        expect(json.map(({ id }: { id: number }) => id)).toEqual(
          Array.from({ length: 10 }, (_, place) => 1 + 5 * (at % paths.length) + place),
        );
      }
    });
    const many = sent.filter(({ name }) => name.startsWith('list_many')).length;
    expect(many > 0).toBe(isOneStatement);
    await store.close();
  });

  test('a worker as DATABASE_URL: the start and distribute say so, and a server that is there is not ready', async () => {
    await distribute('--reference');
    const [, worker] = (await nodesOf(urlOf(database))) as [URL, URL];
    const env = { DATABASE_URL: worker.href, MIGRATE_ON_START: 'false' };
    const message = 'DATABASE_URL names a worker of a Citus cluster; it has to name the coordinator.';
    const refused = { code: 1, stderr: `animal-store: ${message}\n` };
    expect(await run('main', [], { ...env, PORT: `${await freePort()}` }).ended).toMatchObject(refused);
    expect(await cli(['distribute', '--reference'], env)).toMatchObject(refused);

    const config = loadConfig({ ...env, LOG_LEVEL: 'silent' });
    const open = await Database.open(config.database, modelOf(modules));
    const app = await buildApp({ config, database: open, modules });
    const { statusCode, body } = await app.inject('/readyz');
    expect([statusCode, JSON.parse(body).message]).toEqual([503, message]);
    await app.close();
    await open.close();
  });
});
