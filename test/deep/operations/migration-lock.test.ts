import { createEmptyDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { type Node, openNode } from '../../support/migrations.ts';
import { cli, eventually, freePort, onPostgres, run } from '../../support/process.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import { openSession } from '../../support/session.ts';

const onServer = onPostgres || hasPostgres ? describe : describe.skip;
const key = `hashtext('animal-store migrations')`;
const holders = `select pid from pg_locks where locktype = 'advisory' and granted and pid <> pg_backend_pid()
  and database = (select oid from pg_database where datname = current_database())`;

onServer('the lock for migrations (PostgreSQL only: the embedded store has a file for it)', () => {
  let own: TestPostgres | undefined;
  beforeAll(async () => {
    if (!onPostgres) own = await TestPostgres.start();
  });
  afterAll(() => own?.remove());
  const database = databaseForEach(() => createEmptyDatabase(own?.url()));
  let session: Awaited<ReturnType<typeof openSession>>;
  let node: Node;
  beforeEach(async () => {
    session = await openSession(database);
    node = await openNode(database);
  });
  afterEach(async () => {
    await node.database.close();
    await session.end();
  });

  test('a node waits for a node of an earlier release, which locks a session, and says so', async () => {
    await session.query(`select pg_advisory_lock(${key})`);
    const migrating = node.database.migrate();
    await eventually(async () => node.lines.length > 0);
    expect(node.lines).toEqual([['waiting for another node’s migrations', { ms: expect.any(Number) }]]);
    const idle = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and state = 'idle' and query = 'rollback'`;
    // It keeps no snapshot meanwhile, for which an index that is built concurrently would wait.
    await eventually(async () => (await session.query(idle)).rowCount === 1);
    await session.query(`select pg_advisory_unlock(${key})`);
    expect((await migrating).length).toBeGreaterThan(0);
  });

  test('a node of an earlier release waits for this one', async () => {
    const take = `select pg_try_advisory_lock(${key}) as taken`;
    await node.database.exclusively(async () => {
      expect((await session.query(take)).rows).toEqual([{ taken: false }]);
    });
    expect((await session.query(take)).rows).toEqual([{ taken: true }]);
  });

  test('it is held through what would end an idle transaction', async () => {
    const name = (await session.query('select current_database() as name')).rows[0].name;
    await session.query(`alter database ${name} set idle_in_transaction_session_timeout = 1`);
    await session.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
    await node.database.exclusively(async (assertHeld) => {
      await session.query('select pg_sleep(0.1)');
      await assertHeld();
      const { rows } = await session.query(`select backend_xmin from pg_stat_activity where pid = (${holders})`);
      expect(rows).toEqual([{ backend_xmin: null }]);
    });
  });

  test('a lock that is lost during the work is noticed, at once and at the end', async () => {
    const lost = 'The lock for migrations was lost';
    const work = node.database.exclusively(async (assertHeld) => {
      await assertHeld();
      await session.query(`select pg_terminate_backend(pid) from (${holders}) as holder`);
      await expect(assertHeld()).rejects.toThrow(lost);
    });
    await expect(work).rejects.toThrow(lost);
  });

  test('the lock goes with the process that holds it', async () => {
    await session.query('begin; create table pet (id int)');
    const { child, ended } = run('main', [], { ...database.env, PORT: `${await freePort()}` });
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    const other = await openSession(database);
    await eventually(async () => (await other.query(waits)).rowCount === 1);
    expect((await other.query(holders)).rowCount).toBe(1);
    child.kill('SIGKILL');
    await ended;
    await eventually(async () => (await other.query(holders)).rowCount === 0);
    await session.query('rollback');
    expect((await node.database.migrate()).length).toBeGreaterThan(0);
    await other.end();
  });

  test('`migrate` says on standard error that it waits', async () => {
    await session.query(`select pg_advisory_lock(${key})`);
    const { output, ended } = run('cli', ['migrate'], { ...database.env });
    await eventually(async () => output.stderr !== '');
    await session.query(`select pg_advisory_unlock(${key})`);
    expect(await ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^applied: /),
      stderr: expect.stringMatching(/^animal-store: waiting for another node’s migrations \(ms: \d+\)\n$/),
    });
    expect((await cli(['migrate'], database.env)).stderr).toBe('');
  });
});
