import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import { onPostgres } from '../../support/process.ts';

const given = databaseForEach();

(onPostgres ? test : test.skip)(
  'connections that break in transactions are replaced, and the pool can be closed (PostgreSQL only)',
  async () => {
    const { database } = await openNode(given, [], { DATABASE_POOL_MAX: '2' });
    const em = database.orm.em.fork();
    for (let time = 1; time <= 5; time++) {
      const broken = em.transactional((own) => own.execute('select pg_terminate_backend(pg_backend_pid())'));
      await expect(broken).rejects.toThrow();
    }
    expect(await database.rows({ name: 'one', text: 'select 1' }, [])).toEqual([['1']]);
    await database.close();
  },
);

(onPostgres ? test : test.skip)(
  'a check of readiness does not wait for a connection that requests use (PostgreSQL only)',
  async () => {
    const { database } = await openNode(given, [], { DATABASE_POOL_MAX: '2' });
    await database.migrate();
    const sleep = () => database.rows({ name: 'sleep', text: 'select pg_sleep(3)' }, []);
    const busy = Promise.all([sleep(), sleep(), sleep()]).then(() => 'busy');
    const ready = database.assertReady().then(() => 'ready');
    expect(await Promise.race([ready, busy])).toBe('ready');
    await busy;
    await database.close();
  },
);

test('a database that was only asked has no connection left when it is closed', async () => {
  const { database } = await openNode(given);
  await database.ping();
  await database.close();
  // Otherwise it would keep the process alive until the connection has been idle for ten seconds.
  expect(Reflect.get(database, 'primary').pool).toMatchObject({ ended: true, totalCount: 0 });
});
