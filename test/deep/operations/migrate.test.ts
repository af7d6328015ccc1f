import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { migrationOf, type Node, openNode } from '../../support/migrations.ts';
import { cli, eventually, freePort, onPostgres, ownsSessions, run, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import { openSession } from '../../support/session.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createEmptyDatabase);

test('with MIGRATE_ON_START=false neither a server nor a `keys` command migrates', async () => {
  const env = { ...database.env, MIGRATE_ON_START: 'false', BOOTSTRAP_API_KEY: key };
  const server = await startServer(env, { until: '/livez' });
  expect((await rest(server, '/v1/pets')).status).toBe(503);
  const { status, text } = await send(server.origin, { path: '/readyz' });
  expect([status, JSON.parse(text).message]).toEqual([503, 'The database has not been migrated.']);
  expect(await cli(['keys', 'list'], env)).toMatchObject({
    code: 1,
    stderr: 'animal-store: The database has not been migrated (MIGRATE_ON_START; `npm run migrate`).\n',
  });
  expect((await cli(['migrate'], env)).stdout).toMatch(/^applied: /);
  expect((await send(server.origin, { path: '/readyz' })).status).toBe(200);
  expect((await rest(server, '/v1/pets')).json).toEqual([]);
  expect((await cli(['keys', 'list', '--json'], env)).stdout).toBe('[]\n');
});

test('MikroORM’s own command line works on the store in use, finds nothing to migrate, and ends', async () => {
  const command = [resolve('node_modules/.bin/mikro-orm'), 'migration:check'];
  const env = { PATH: process.env.PATH, ...database.env };
  const { stdout } = await promisify(execFile)(process.execPath, command, { env });
  expect(stdout).toContain('No changes required, schema is up-to-date');
});

const onServer = onPostgres ? describe : describe.skip;

onServer('on PostgreSQL (skipped on the embedded store, which has tests of its own)', () => {
  test('a migration may take longer than a statement may, and than PostgreSQL may be silent', async () => {
    const port = await freePort();
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    const holder = new pg.Client(DATABASE_URL);
    await holder.connect();
    await holder.query(
      "do $$ begin execute format('alter database %I set statement_timeout = 50', current_database()); end $$",
    );
    await holder.query('begin; create table pet (id int)');
    run('main', [], { DATABASE_URL, PORT: `${port}`, DATABASE_STATEMENT_TIMEOUT_MS: '50' });
    const waiting = `select wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '1200 ms'
      from pg_stat_activity where datname = current_database() and query like '%create table "pet"%' and pid <> pg_backend_pid()`;
    await eventually(async () => (await rowsOf(waiting)).includes(true));
    await holder.query('rollback');
    await holder.end();
    await eventually(async () => (await send(`http://127.0.0.1:${port}`, { path: '/readyz' })).status === 200);
  });

  test('a migration whose connection breaks ends the start with a message', async () => {
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    const holder = new pg.Client(DATABASE_URL);
    await holder.connect();
    await holder.query('begin; create table pet (id int)');
    const { ended } = run('main', [], { DATABASE_URL, PORT: `${await freePort()}` });
    const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%create table "pet"%'`;
    await eventually(async () => (await rowsOf(terminate)).includes(true));
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringMatching(/^animal-store: .+\n$/) });
    await holder.end();
  });
});

/** The only column of a query's rows. */
async function rowsOf(query: string): Promise<unknown[]> {
  const client = new pg.Client((database.env as { DATABASE_URL: string }).DATABASE_URL);
  await client.connect();
  const { rows } = await client.query({ text: query, rowMode: 'array' }).finally(() => client.end());
  return rows.flat();
}

const addWeight = migrationOf('2027_01_01_000000_add_weight', ['alter table pet add column weight int']);
const addIndex = migrationOf(
  '2027_01_01_000001_add_index',
  ['drop index concurrently if exists pet_name_index', 'create index concurrently pet_name_index on pet (name)'],
  false,
);
/** Many short attempts. */
const patience = { lockTimeout: 200, attempts: 1000, pause: 100 };

const nodes: Node[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.database.close();
});
async function node(...args: Parameters<typeof openNode> extends [unknown, ...infer Rest] ? Rest : never) {
  const one = await openNode(database, ...args);
  nodes.push(one);
  return one;
}
const recorded = async ({ database }: Node) => (await sql(database, 'select name from mikro_orm_migrations')).flat();

test('a migration that fails leaves nothing; those before it stay applied', async () => {
  const broken = migrationOf('2027_01_01_000002_broken', ['create table toy (id int)', 'select 1 / 0']);
  const one = await node([addWeight, broken]);
  await expect(one.database.migrate()).rejects.toThrow('division by zero');
  expect(one.lines.map(([message, { migration }]) => [message, migration]).at(-1)).toEqual([
    'migration applied',
    addWeight.name,
  ]);
  expect(await recorded(one)).toContain(addWeight.name);
  expect(await recorded(one)).not.toContain(broken.name);
  expect(await sql(one.database, `select to_regclass('toy')`)).toEqual([[null]]);
});

test('one that opts out of its transaction and others are applied together, in their order', async () => {
  const addColour = migrationOf('2027_01_01_000002_add_colour', ['alter table pet add column colour text']);
  const one = await node([addWeight, addIndex, addColour]);
  const names = [addWeight.name, addIndex.name, addColour.name];
  expect((await one.database.migrate()).slice(-3)).toEqual(names);
  expect((await recorded(one)).slice(-3)).toEqual(names);
  expect(await sql(one.database, `select to_regclass('pet_name_index')::text`)).toEqual([['pet_name_index']]);
});

test('two nodes at once apply each migration once', async () => {
  const both = [await node([addWeight]), await node([addWeight])];
  const applied = await Promise.all(both.map(({ database }) => database.migrate()));
  expect(applied.flat().sort()).toEqual((await recorded(both[0] as Node)).sort());
});

onServer('while the service runs (PostgreSQL only: the embedded store has one session at a time)', () => {
  test('a migration behind a reader lets lists and creations pass, and is applied when the reader ends', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    const reader = await openSession(database);
    await reader.query('begin; select 1 from pet');
    const { database: next, lines } = await node([addWeight]);
    const migrating = next.migrate(patience);
    let created = 0;
    // Several times over: each is answered before the next is sent.
    while (lines.length < 3) {
      const answer = await rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } });
      expect(answer.status).toBe(201);
      created += 1;
      expect((await rest(server, '/v1/pets?limit=1')).status).toBe(200);
    }
    await reader.query('commit');
    await reader.end();
    expect(await migrating).toEqual([addWeight.name]);
    const waits = lines.slice(0, -1);
    expect(waits).toEqual(
      waits.map((_, index) => ['a migration is waiting for a lock', { migration: addWeight.name, attempt: index + 1 }]),
    );
    expect(lines.at(-1)).toEqual(['migration applied', { migration: addWeight.name, ms: expect.any(Number) }]);
    expect(await sql(next, 'select count(*) from pet where weight is null')).toEqual([[`${created}`]]);
  });

  test('a migration that never gets its lock says so, and leaves nothing', async () => {
    const one = await node([addWeight]);
    await (await node()).database.migrate();
    const reader = await openSession(database);
    await reader.query('begin; select 1 from pet');
    await expect(one.database.migrate({ lockTimeout: 10, attempts: 3, pause: 1 })).rejects.toThrow(
      `The migration ${addWeight.name} did not get its locks in 3 attempts; nothing of it was applied.`,
    );
    expect(one.lines.map(([, { attempt }]) => attempt)).toEqual([1, 2]);
    expect(await recorded(one)).not.toContain(addWeight.name);
    await reader.end();
    expect(await one.database.migrate()).toEqual([addWeight.name]);
  });

  test('an index is built while a writer goes on, another node waits, and locks have a limit', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    const writer = await openSession(database);
    // What a role or a database sets cannot be lifted for a whole session of a pooler's.
    if (ownsSessions) {
      await writer.query(
        `do $$ begin execute format('alter database %I set lock_timeout = 1', current_database()); end $$`,
      );
    }
    await writer.query(`begin; insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`);
    const [one, other] = [await node([addIndex]), await node([addIndex])];
    const migrating = one.database.migrate();
    const builds = `select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'create index concurrently%'`;
    // Not the writer's: a transaction sees the activity as it was at its first look.
    await eventually(async () => (await sql(one.database, builds)).length === 1);
    const waiting = other.database.migrate();
    await eventually(async () => other.lines.length > 0);
    const json = { name: 'Rex', categoryId: 5 };
    expect((await rest(server, '/v1/pets', { method: 'POST', json })).status).toBe(201);
    await writer.query('commit');
    expect(await migrating).toEqual([addIndex.name]);
    expect(await waiting).toEqual([]);
    const valid = `select indisvalid from pg_index where indexrelid = 'pet_name_index'::regclass`;
    expect((await writer.query(valid)).rows).toEqual([{ indisvalid: true }]);
    await writer.end();
  });

  test('DATABASE_DIRECT_URL is where migrations go; when DATABASE_URL leads elsewhere, that is noticed', async () => {
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    const elsewhere = new URL(DATABASE_URL);
    elsewhere.pathname = '/postgres';
    const past = await node([], { DATABASE_URL: elsewhere.href, DATABASE_DIRECT_URL: DATABASE_URL });
    await expect(past.database.migrate()).rejects.toThrow('but DATABASE_URL names another database');
    const both = await node([], { DATABASE_URL, DATABASE_DIRECT_URL: DATABASE_URL });
    expect(await both.database.migrate()).toEqual([]);
    const nowhere = await node([], { DATABASE_URL, DATABASE_DIRECT_URL: 'postgres://nobody@127.0.0.1:1/none' });
    await expect(nowhere.database.migrate()).rejects.toThrow('(DATABASE_DIRECT_URL) cannot be reached');
  });
});

const lockKey = `hashtext('animal-store migrations')`;
const holders = `select pid from pg_locks where locktype = 'advisory' and granted and pid <> pg_backend_pid()
  and database = (select oid from pg_database where datname = current_database())`;

(onPostgres || hasPostgres ? describe : describe.skip)(
  'the lock for migrations (PostgreSQL only: the embedded store has a file for it)',
  () => {
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
      await session.query(`select pg_advisory_lock(${lockKey})`);
      const migrating = node.database.migrate();
      await eventually(async () => node.lines.length > 0);
      expect(node.lines).toEqual([['waiting for another node’s migrations', { ms: expect.any(Number) }]]);
      const idle = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and state = 'idle' and query = 'rollback'`;
      // It keeps no snapshot meanwhile, for which an index that is built concurrently would wait.
      await eventually(async () => (await session.query(idle)).rowCount === 1);
      await session.query(`select pg_advisory_unlock(${lockKey})`);
      expect((await migrating).length).toBeGreaterThan(0);
    });

    test('a node of an earlier release waits for this one', async () => {
      const take = `select pg_try_advisory_lock(${lockKey}) as taken`;
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
      const lost = 'The migration lock was lost';
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
      await session.query(`select pg_advisory_lock(${lockKey})`);
      const { output, ended } = run('cli', ['migrate'], { ...database.env });
      await eventually(async () => output.stderr !== '');
      await session.query(`select pg_advisory_unlock(${lockKey})`);
      expect(await ended).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^applied: /),
        stderr: expect.stringMatching(/^animal-store: waiting for another node’s migrations \(ms: \d+\)\n$/),
      });
      expect((await cli(['migrate'], database.env)).stderr).toBe('');
    });
  },
);
