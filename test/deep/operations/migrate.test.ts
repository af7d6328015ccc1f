// runs: embedded, postgres, pgbouncer

import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { MigrationObject } from '@mikro-orm/core';
import type pg from 'pg';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { migrationOf, type Node, openNode } from '../../support/migrations.ts';
import {
  bootstrapKey,
  cli,
  type Env,
  eventually,
  freePort,
  onPostgres,
  ownsSessions,
  run,
  startServer,
} from '../../support/process.ts';
import { untilLogged } from '../../support/process-log.ts';
import { rest } from '../../support/rest.ts';
import { openSession } from '../../support/session.ts';

const database = databaseForEach(createEmptyDatabase);
const withKey = () => ({ ...database.env, BOOTSTRAP_API_KEY: bootstrapKey });
const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 5 } };

test('with MIGRATE_ON_START=false neither a server nor a `keys` command migrates', async () => {
  const env = { ...withKey(), MIGRATE_ON_START: 'false' };
  const server = await startServer(env, { until: '/livez' });
  const all = expect.arrayContaining([
    '2026_11_20_120000_create_pet_and_api_key',
  ]);
  const waiting = await untilLogged(
    server,
    'migrations are waiting to be applied',
  );
  expect(waiting).toMatchObject([{ level: 40, migrations: all }]);
  expect((await rest(server, '/v1/pets')).status).toBe(503);
  const { status, text } = await send(server.origin, { path: '/readyz' });
  expect([status, JSON.parse(text).message]).toEqual([
    503,
    'The database has not been migrated.',
  ]);
  expect(await cli(['keys', 'list'], env)).toMatchObject({
    code: 1,
    stderr:
      'animal-store: The database has not been migrated (MIGRATE_ON_START, or the command `migrate`).\n',
  });
  expect((await cli(['migrate'], env)).stdout).toMatch(/^applied: /);
  expect((await send(server.origin, { path: '/readyz' })).status).toBe(200);
  expect((await rest(server, '/v1/pets')).json).toEqual([]);
  expect((await cli(['keys', 'list', '--json'], env)).stdout).toBe('[]\n');
});

test('MikroORM’s own command line works on the store in use, finds no difference to the schema, and ends', async () => {
  const command = [resolve('node_modules/.bin/mikro-orm'), 'migration:check'];
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, ...database.env };
  const { stdout } = await promisify(execFile)(process.execPath, command, {
    env,
  });
  expect(stdout).toContain('No changes required, schema is up-to-date');
});

const onServer = onPostgres ? describe : describe.skip;

onServer(
  'a start on PostgreSQL (skipped on the embedded store, which has its own tests)',
  () => {
    const creating = `from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    and query like '%create table "pet"%' and pid <> pg_backend_pid()`;
    /**
     * Starts a server of which a migration waits for another session, which
     * creates the same table.
     */
    async function startBehind(setting: string, env: Env = {}) {
      const holder = await openSession(database);
      await alterDatabase(holder, setting);
      await holder.query('begin; create table pet (id int)');
      const port = await freePort();
      return {
        holder,
        port,
        ...run('main', [], { ...database.env, PORT: `${port}`, ...env }),
      };
    }

    test('may migrate for longer than a statement may take, and than PostgreSQL may leave a statement without a response', async () => {
      const { holder, port } = await startBehind('set statement_timeout = 50', {
        DATABASE_STATEMENT_TIMEOUT_MS: '50',
      });
      const waiting = `select 1 ${creating} and clock_timestamp() - query_start > interval '1200 ms'`;
      await eventually(async () => (await rowsOf(waiting)).length > 0);
      await holder.query('rollback');
      await holder.end();
      await eventually(
        async () =>
          (await send(`http://127.0.0.1:${port}`, { path: '/readyz' }))
            .status === 200,
      );
    });

    test('ends with a message when the connection of a migration breaks', async () => {
      const { holder, ended } = await startBehind('reset all');
      await eventually(
        async () =>
          (await rowsOf(`select pg_terminate_backend(pid) ${creating}`))
            .length > 0,
      );
      expect(await ended).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^animal-store: .+\n$/),
      });
      await holder.end();
    });
  },
);

/** Sets a parameter of the database for new sessions. */
const alterDatabase = (session: pg.Client, setting: string) =>
  session.query(
    `do $$ begin execute format('alter database %I ${setting}', current_database()); end $$`,
  );

async function rowsOf(query: string): Promise<unknown[]> {
  const session = await openSession(database);
  return (await session.query(query).finally(() => session.end())).rows;
}

const addWeight = migrationOf('2027_01_01_000000_add_weight', [
  'alter table pet add column weight int',
]);
const addIndex = migrationOf(
  '2027_01_01_000001_add_index',
  [
    'drop index concurrently if exists pet_name_index',
    'create index concurrently pet_name_index on pet (name)',
  ],
  false,
);
const nodes: Node[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.database.close();
});
async function node(
  more: MigrationObject[] = [],
  env: Env = {},
): Promise<Node> {
  const opened = await openNode(database, more, env);
  nodes.push(opened);
  return opened;
}
const recorded = async ({ database }: Node) =>
  (await sql(database, 'select name from mikro_orm_migrations')).flat();

test('a migration that fails is rolled back; earlier migrations stay applied', async () => {
  const broken = migrationOf('2027_01_01_000002_broken', [
    'create table toy (id int)',
    'select 1 / 0',
  ]);
  const later = migrationOf('2027_01_01_000003_later', ['select 1']);
  const one = await node([addWeight, broken, later]);
  const start = `The migration ${broken.name} was rolled back: `;
  const left = `, ${addWeight.name}. Not applied: ${later.name}.`;
  const failure = await one.database.migrate().catch((error) => error);
  expect(failure.message.startsWith(start)).toBe(true);
  expect(failure.message).toContain(', at: select 1 / 0. Applied before: ');
  expect(failure.message.endsWith(left)).toBe(true);
  expect(one.lines.at(-1)).toMatchObject([
    'migration applied',
    { migration: addWeight.name },
  ]);
  expect(await recorded(one)).toContain(addWeight.name);
  expect(await recorded(one)).not.toContain(broken.name);
  expect(await sql(one.database, `select to_regclass('toy')`)).toEqual([
    [null],
  ]);
});

test('a migration that is written anew after it was applied names the remedy', async () => {
  const statements = ['create table toy (id int)'];
  const first = await node([migrationOf('2027_01_01_000002_toy', statements)]);
  await first.database.migrate();
  const second = await node([migrationOf('2027_01_01_000003_toy', statements)]);
  await expect(second.database.migrate()).rejects.toThrow(
    /^The migration 2027_01_01_000003_toy was rolled back: .*toy.* An earlier text of it may have been applied: /,
  );
});

test('a migration without a transaction that fails may be applied in part', async () => {
  const name = '2027_01_01_000002_broken';
  const statements = ['create table toy (id int)', 'select 1 /\n  0'];
  const one = await node([migrationOf(name, statements, false)]);
  const failure = await one.database.migrate().catch((error) => error);
  const start = `The migration ${name} may be applied in part: `;
  expect(failure.message.startsWith(start)).toBe(true);
  expect(failure.message).toMatch(
    /, at: select 1 \/ 0\. Applied before: .* Not applied: no other\.$/,
  );
  expect(await recorded(one)).not.toContain(name);
});

test('two concurrent nodes apply each migration once and in order, even one that opts out of its transaction', async () => {
  const addColour = migrationOf('2027_01_01_000002_add_colour', [
    'alter table pet add column colour text',
  ]);
  const next = [addWeight, addIndex, addColour];
  const both = [await node(next), await node(next)] as const;
  const applied = await Promise.all(
    both.map(({ database }) => database.migrate()),
  );
  const all = await recorded(both[0]);
  expect(applied.flat().sort()).toEqual(all.toSorted());
  expect(all.slice(-3)).toEqual(next.map(({ name }) => name));
  expect(
    await sql(both[0].database, `select to_regclass('pet_name_index')::text`),
  ).toEqual([['pet_name_index']]);
});

onServer(
  'while the service runs (PostgreSQL only: the embedded store has one session at a time)',
  () => {
    test('a migration that waits for a reader blocks neither lists nor creations, gives up after its attempts, and changes nothing until it is applied', async () => {
      const server = await startServer(withKey());
      const reader = await openSession(database);
      await reader.query('begin; select 1 from pet');
      const next = await node([addWeight]);
      await expect(
        next.database.migrate({ lockTimeout: 10, attempts: 3, pause: 1 }),
      ).rejects.toThrow(
        `The migration ${addWeight.name} was rolled back: it did not get its locks in 3 attempts.`,
      );
      const waits = (attempt: number) => [
        'a migration is waiting for a lock',
        { migration: addWeight.name, attempt },
      ];
      expect(next.lines.splice(0)).toEqual([1, 2].map(waits));
      expect(await recorded(next)).not.toContain(addWeight.name);

      // With many short attempts.
      const migrating = next.database.migrate({
        lockTimeout: 200,
        attempts: 1000,
        pause: 100,
      });
      let created = 0;
      // Several requests, each sent after the response to the one before.
      while (next.lines.length < 3) {
        expect((await rest(server, '/v1/pets', newPet)).status).toBe(201);
        created += 1;
        expect((await rest(server, '/v1/pets?limit=1')).status).toBe(200);
      }
      await reader.query('commit');
      await reader.end();
      expect(await migrating).toEqual([addWeight.name]);
      const applied = [
        'migration applied',
        { migration: addWeight.name, ms: expect.any(Number) },
      ];
      expect(next.lines).toEqual([
        ...next.lines.slice(1).map((_, index) => waits(index + 1)),
        applied,
      ]);
      expect(
        await sql(
          next.database,
          'select count(*) from pet where weight is null',
        ),
      ).toEqual([[`${created}`]]);
    });

    test('an index is built concurrently although a writer is open, another node waits, and lock_timeout is 1 ms', async () => {
      const server = await startServer(withKey());
      const writer = await openSession(database);
      // Through a pooler a setting of the role or database cannot be reset for
      // a whole session.
      if (ownsSessions) await alterDatabase(writer, 'set lock_timeout = 1');
      await writer.query(
        `begin; insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`,
      );
      const [one, other] = [await node([addIndex]), await node([addIndex])];
      const migrating = one.database.migrate();
      const builds = `select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'create index concurrently%'`;
      // Not in the writer's session: a transaction sees the activity as of its
      // first query.
      await eventually(
        async () => (await sql(one.database, builds)).length === 1,
      );
      const waiting = other.database.migrate();
      await eventually(async () => other.lines.length > 0);
      expect((await rest(server, '/v1/pets', newPet)).status).toBe(201);
      await writer.query('commit');
      expect(await migrating).toEqual([addIndex.name]);
      expect(await waiting).toEqual([]);
      const valid = `select indisvalid from pg_index where indexrelid = 'pet_name_index'::regclass`;
      expect((await writer.query(valid)).rows).toEqual([{ indisvalid: true }]);
      await writer.end();
    });

    test('migrations use DATABASE_DIRECT_URL, and are refused when DATABASE_URL names another database', async () => {
      const { DATABASE_URL } = database.env as { DATABASE_URL: string };
      const elsewhere = await createEmptyDatabase();
      const past = await node([], {
        ...elsewhere.env,
        DATABASE_DIRECT_URL: DATABASE_URL,
      });
      await expect(past.database.migrate()).rejects.toThrow(
        'but DATABASE_URL names another database',
      );
      const both = await node([], {
        DATABASE_URL,
        DATABASE_DIRECT_URL: DATABASE_URL,
      });
      expect(await both.database.migrate()).toEqual([]);
      const nowhere = await node([], {
        DATABASE_URL,
        DATABASE_DIRECT_URL: 'postgres://nobody@127.0.0.1:1/none',
      });
      await expect(nowhere.database.migrate()).rejects.toThrow(
        '(DATABASE_DIRECT_URL) cannot be reached',
      );
      for (const { database } of nodes.splice(0)) await database.close();
      await elsewhere.drop();
    });
  },
);

const lockKey = `hashtext('animal-store migrations')`;
const holders = `select pid from pg_locks where locktype = 'advisory' and granted and pid <> pg_backend_pid()
  and database = (select oid from pg_database where datname = current_database())`;

onServer(
  'the lock for migrations (PostgreSQL only: the embedded store has a file for it)',
  () => {
    let session: pg.Client;
    beforeEach(async () => {
      session = await openSession(database);
    });
    afterEach(() => session.end());

    test('a node that waits for one of an earlier release, which uses a session lock, logs that, and ends with 0 at SIGTERM', async () => {
      await session.query(`select pg_advisory_lock(${lockKey})`);
      const server = run('main', [], {
        ...database.env,
        PORT: `${await freePort()}`,
      });
      await eventually(async () =>
        server.output.stdout.includes('waiting for another node’s migrations'),
      );
      server.child.kill('SIGTERM');
      expect(await server.ended).toMatchObject({
        code: 0,
        signal: null,
        stderr: '',
      });

      const command = run('cli', ['migrate'], database.env);
      await eventually(async () => command.output.stderr !== '');
      const idle = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and state = 'idle' and query = 'rollback'`;
      // While it waits it keeps no snapshot, because the concurrent build of an
      // index would wait for that.
      await eventually(async () => (await session.query(idle)).rows.length > 0);
      await session.query(`select pg_advisory_unlock(${lockKey})`);
      expect(await command.ended).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^applied: /),
        stderr: expect.stringMatching(
          /^(?:animal-store: waiting for another node’s migrations \(ms: \d+\)\n)+$/,
        ),
      });
    });

    test('excludes nodes of an earlier release, despite a timeout for idle transactions, and keeps no snapshot', async () => {
      await alterDatabase(
        session,
        'set idle_in_transaction_session_timeout = 1',
      );
      await alterDatabase(
        session,
        `set default_transaction_isolation = ''repeatable read''`,
      );
      const { database: one } = await node();
      const take = `select pg_try_advisory_lock(${lockKey}) as taken`;
      await one.exclusively(async (assertHeld) => {
        await session.query('select pg_sleep(0.1)');
        await assertHeld();
        expect((await session.query(take)).rows).toEqual([{ taken: false }]);
        const { rows } = await session.query(
          `select backend_xmin from pg_stat_activity where pid = (${holders})`,
        );
        expect(rows).toEqual([{ backend_xmin: null }]);
      });
      expect((await session.query(take)).rows).toEqual([{ taken: true }]);
    });

    test('that is lost during the work makes the next check and the work itself fail', async () => {
      const lost = 'The migration lock was lost';
      const { database: one } = await node();
      const work = one.exclusively(async (assertHeld) => {
        await assertHeld();
        await session.query(
          `select pg_terminate_backend(pid) from (${holders}) as holder`,
        );
        await expect(assertHeld()).rejects.toThrow(lost);
      });
      await expect(work).rejects.toThrow(lost);
    });
  },
);
