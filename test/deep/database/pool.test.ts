import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Database } from '../../../packages/postgres/src/database.ts';
import { modelOf } from '../../../src/mikro-orm.config.ts';
import { modules } from '../../../src/modules.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { onPostgres } from '../../support/process.ts';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  const { DATABASE_URL: url, DATA_DIR: dataDir = '' } = testDatabase.env as Record<string, string>;
  const limits = { name: 'test', poolMax: 2, connectTimeout: 5000, statementTimeout: 10_000 };
  database = await Database.open({ url, dataDir, ...limits }, modelOf(modules));
});
afterEach(async () => {
  await testDatabase.drop();
});

(onPostgres ? test : test.skip)(
  'connections that break in transactions are replaced, and the pool can be closed (PostgreSQL only)',
  async () => {
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
  await database.ping();
  await database.close();
  // Otherwise it would keep the process alive until the connection has been idle for ten seconds.
  expect(Reflect.get(database, 'primary').pool).toMatchObject({ ended: true, totalCount: 0 });
});

test('work that needs the model only connects to nothing', async () => {
  await database.close();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`;
  const limits = { name: 'test', poolMax: 2, connectTimeout: 5000, statementTimeout: 10_000 };
  await (await Database.open({ url, dataDir: '', connects: false, ...limits }, modelOf(modules))).close();
  await (await Database.open({ url, dataDir: '', ...limits }, modelOf(modules))).close();
  // The second one: it looks whether there is a pooler.
  expect(connections).toBe(1);
  server.close();
});
