import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { createEmptyDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { cli, eventually, freePort, onPostgres, run, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createEmptyDatabase);

test('`migrate` applies what is pending, and says so', async () => {
  expect(await cli(['migrate'], database.env)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^applied: \d{4}_\w+(?:, \d{4}_\w+)*\n$/),
    stderr: '',
  });
  expect(await cli(['migrate'], database.env)).toMatchObject({
    code: 0,
    stdout: 'the database is up to date\n',
    stderr: '',
  });
});

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
  test('two servers that start at once on an empty database both serve, and migrate once', async () => {
    const env = { ...database.env, BOOTSTRAP_API_KEY: key };
    const servers = await Promise.all([startServer(env), startServer(env)]);
    for (const [number, server] of servers.entries()) {
      await rest(server, '/v1/pets', { method: 'POST', json: { name: `pet ${number}`, categoryId: number } });
    }
    for (const server of servers) expect((await rest(server, '/v1/pets')).json).toHaveLength(2);
    const names = await rowsOf('select name from mikro_orm_migrations');
    expect(names.length).toBeGreaterThan(0);
    expect(new Set(names).size).toBe(names.length);
  });

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

(onPostgres ? test : test.skip)(
  'the smallest pool is large enough to migrate and to serve (PostgreSQL only)',
  async () => {
    const env = { ...database.env, DATABASE_POOL_MAX: '2' };
    expect(await cli(['migrate'], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^applied: /) });
    const server = await startServer({ ...env, BOOTSTRAP_API_KEY: key });
    expect((await rest(server, '/v1/pets')).status).toBe(200);
  },
);
