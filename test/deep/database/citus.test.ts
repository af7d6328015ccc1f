// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference

import { buildApp } from '#engine/app.js';
import { loadConfig } from '#engine/config/config.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../../src/modules.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql, stock } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { cli, freePort, run } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { distribute, type Layout } from '../../support/servers/citus.ts';
import { citusLayout, nodesOf } from '../../support/servers/citus-database.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const database = databaseForEach(createEmptyDatabase);

const startOnDatabase = () =>
  startStore(
    {},
    { database: { env: database.env, drop: async () => undefined } },
  );

/**
 * Migrates the database and distributes its tables with the statements of
 * docs/scale.md.
 */
async function migrateAndDistribute(layout: Layout): Promise<void> {
  expect(await cli(['migrate'], database.env)).toMatchObject({ code: 0 });
  await distribute(urlOf(database), layout);
}

(citusLayout ? describe : describe.skip)(
  'on a Citus cluster (skipped without TEST_CITUS)',
  () => {
    test('a migration may alter tables that are distributed', async () => {
      for (const layout of ['reference', 4] as const) {
        await migrateAndDistribute(layout);
        const store = await startOnDatabase();
        await sql(
          store.database,
          'alter table pet add column if not exists note text null',
        );
        await sql(
          store.database,
          'create index if not exists pet_note_index on pet (note, id)',
        );
        const json = { name: 'Rex', categoryId: 1 };
        expect(
          (await rest(store, '/v1/pets', { method: 'POST', json })).status,
        ).toBe(201);
        await store.close();
        const session = await openSession(database);
        await session.query("select undistribute_table('pet')");
        for (const table of [
          'api_key',
          'deprecated_call',
          'idempotency_key',
          'key_event',
        ]) {
          await session.query(`select undistribute_table('${table}')`);
        }
        await session.end();
      }
    });

    test.each(['reference', 4] as const)(
      'each of many concurrent lists gets its own page: %s',
      async (layout) => {
        await migrateAndDistribute(layout);
        const store = await startOnDatabase();
        await stock(store.database, 50);
        const paths = [0, 5, 10, 15, 20, 25, 30, 35].map(
          (after) => `/v1/pets?limit=10&after=${after}`,
        );
        const listAll = () =>
          Promise.all([...paths, ...paths].map((path) => rest(store, path)));
        await listAll();
        for (const [at, { status, json }] of (await listAll()).entries()) {
          expect(status).toBe(200);
          expect(json.map(({ id }: { id: number }) => id)).toEqual(
            Array.from(
              { length: 10 },
              (_, place) => 1 + 5 * (at % paths.length) + place,
            ),
          );
        }
        await store.close();
      },
    );

    test('with a worker in DATABASE_URL the start fails, and a running server is not ready', async () => {
      await migrateAndDistribute('reference');
      const [, worker] = (await nodesOf(urlOf(database))) as [URL, URL];
      const env = { DATABASE_URL: worker.href, MIGRATE_ON_START: 'false' };
      const message =
        'DATABASE_URL names a worker of a Citus cluster; it must name the coordinator.';
      const refused = { code: 1, stderr: `animal-store: ${message}\n` };
      expect(
        await run('main', [], { ...env, PORT: `${await freePort()}` }).ended,
      ).toMatchObject(refused);

      const config = loadConfig({ ...env, LOG_LEVEL: 'silent' });
      const open = await Database.open(config.database, modelOf(modules));
      const app = await buildApp({ config, database: open, modules });
      const { statusCode, body } = await app.inject('/readyz');
      expect([statusCode, JSON.parse(body).message]).toEqual([503, message]);
      await app.close();
      await open.close();
    });
  },
);
