// runs: embedded, postgres, pgbouncer

import { validator } from '#engine/validation/validator.js';
import { petQuerySchema } from '../../../src/pets/pet.schemas.ts';
import { PetService } from '../../../src/pets/pet.service.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import { onPostgres, ownsSessions } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const given = databaseForEach(createEmptyDatabase);
const onServer = onPostgres ? test : test.skip;
const startOnDatabase = (env: Record<string, string>) =>
  startStore(env, {
    database: { env: given.env, drop: async () => undefined },
  });

onServer.each([
  ['options=-c%20search_path%3Dshop', 'shop'],
  ['options=-c+search_path%3Dshop&application_name=shop', 'shop'],
  ['options=-c%20statement_timeout%3D0%20-c%20jit%3Don', 'public'],
  ['statement_timeout=0&query_timeout=1&application_name=shop', 'public'],
])(
  '?%s in DATABASE_URL applies, except time-outs and jit (PostgreSQL only)',
  async (options, schema) => {
    const session = await openSession(given);
    await session.query('create schema shop');
    const url = new URL(urlOf(given));
    url.search = options;
    const store = await startOnDatabase({
      DATABASE_URL: url.href,
      DATABASE_STATEMENT_TIMEOUT_MS: '4321',
    });
    const text = `select current_setting('search_path'), current_setting('statement_timeout'), current_setting('jit')`;
    expect(await sql(store.database, text)).toEqual([
      [expect.stringContaining(schema), '4321ms', 'off'],
    ]);
    expect(
      (
        await rest(store, '/v1/pets', {
          method: 'POST',
          json: { name: 'Rex', categoryId: 5 },
        })
      ).status,
    ).toBe(201);
    // The migrations used this schema, too.
    expect(
      (await session.query(`select name from ${schema}.pet`)).rows,
    ).toEqual([{ name: 'Rex' }]);
    await session.end();
    await store.close();
  },
);

onServer(
  'connections that break in transactions are replaced, and readiness does not wait for one that requests use (PostgreSQL only)',
  async () => {
    const { database } = await openNode(given, [], { DATABASE_POOL_MAX: '2' });
    await database.migrate();
    const em = database.orm.em.fork();
    for (let time = 1; time <= 5; time++) {
      const broken = em.transactional((own) =>
        own.execute('select pg_terminate_backend(pg_backend_pid())'),
      );
      await expect(broken).rejects.toThrow();
    }
    const sleep = () =>
      database.rows({ name: 'test sleep', text: 'select pg_sleep(3)' }, []);
    const busy = Promise.all([sleep(), sleep(), sleep()]).then(() => 'busy');
    const ready = database.assertReady().then(() => 'ready');
    expect(await Promise.race([ready, busy])).toBe('ready');
    await busy;
    await database.close();
  },
);

test('a database that only answered a ping has no connection left when it is closed', async () => {
  const { database } = await openNode(given);
  await database.ping();
  await database.close();
  // Otherwise it would keep the process alive until the connection has been
  // idle for ten seconds.
  expect(Reflect.get(database, 'primary').pool).toMatchObject({
    ended: true,
    totalCount: 0,
  });
});

(ownsSessions ? test : test.skip)(
  'a list that takes too long does not fail the other lists of its batch (PostgreSQL only, which cancels statements; not through a pooler, where the role sets the time-out)',
  async () => {
    const store = await startOnDatabase({
      DATABASE_STATEMENT_TIMEOUT_MS: '1000',
    });
    const pets = `('Rex', 5, 'available'), ('Bella', 5, 'pending'), ('Tom', 5, 'sold')`;
    await sql(
      store.database,
      `insert into pet (name, category_id, status) values ${pets}`,
    );
    // Reading a sold pet takes longer than a statement may take.
    await sql(store.database, 'alter table pet rename to shelf');
    const isSlow = `case when status = 'sold' then pg_sleep(60) is not null else true end`;
    await sql(
      store.database,
      `create view pet as select id, name, category_id, status from shelf where ${isSlow}`,
    );

    // Reads of one turn of the event loop are one batch.
    const service = new PetService(store.database);
    const check = validator(petQuerySchema);
    const queries = [
      { status: 'sold' },
      { status: 'available', limit: 1 },
      { status: 'pending' },
      { status: 'available' },
    ];
    const [sold, ...others] = await Promise.allSettled(
      queries.map((query) => service.list(check(query))),
    );
    const code = {
      isOutcomeUnknown: false,
      message: 'The database cannot answer in time; try again shortly.',
    };
    expect(sold).toMatchObject({ status: 'rejected', reason: code });
    expect(others).toMatchObject(
      ['Rex', 'Bella', 'Rex'].map((name) => ({
        status: 'fulfilled',
        value: { items: [{ name }] },
      })),
    );
    await store.close();
  },
);
