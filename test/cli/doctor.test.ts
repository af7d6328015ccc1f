import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { createOwnDatabase } from '../support/database.ts';
import { databaseForEach } from '../support/each.ts';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import {
  cli,
  type Env,
  eventually,
  freePort,
  killAll,
  onPlainPostgres,
  onPostgres,
  run,
  startServer,
} from '../support/process.ts';

const database = databaseForEach(createOwnDatabase);
const onEmbedded = onPostgres ? describe.skip : describe;
const onServer = onPlainPostgres ? describe : describe.skip;
const servers: Server[] = [];
afterEach(async () => {
  await killAll();
  for (const server of servers.splice(0)) server.close();
});

interface Found {
  state: string;
  found: string;
  remedy?: string;
}

/** What the doctor finds, by what was looked at; and how it ends. */
async function doctor(env: Env) {
  const { code, stdout, stderr } = await cli(['doctor', '--json'], { PORT: `${await freePort()}`, ...env });
  expect({ stderr, isOneLine: /^[^\n]+\n$/.test(stdout) }).toEqual({ stderr: '', isOneLine: true });
  const parsed: { failures: number; warnings: number; findings: Array<Found & { check: string }> } = JSON.parse(stdout);
  const checks = new Map<string, Found>(parsed.findings.map(({ check, ...found }) => [check, found]));
  return { code, stdout, ...parsed, checks };
}

function listening(server: Server): Promise<number> {
  servers.push(server);
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => done((server.address() as { port: number }).port));
  });
}

/** Every file with its size and the time of its last change. */
function traceOf(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .map((name) => `${name} ${statSync(join(folder, name)).size} ${statSync(join(folder, name)).mtimeMs}`)
    .sort();
}

onEmbedded('an embedded store (skipped on PostgreSQL)', () => {
  const folder = () => (database.env as { DATA_DIR: string }).DATA_DIR;

  test('that is not there yet is not made, and nothing is wrong with that', async () => {
    const DATA_DIR = join(folder(), 'later');
    const { code, failures, warnings, checks } = await doctor({ DATA_DIR });
    expect({ code, failures, warnings }).toEqual({ code: 0, failures: 0, warnings: 0 });
    expect(checks.get('database')).toEqual({ state: 'ok', found: expect.stringContaining('the first start makes it') });
    expect(existsSync(DATA_DIR)).toBe(false);
  });

  test('is looked into while a service has it, and when nobody has it, without a trace', async () => {
    const port = await freePort();
    const service = await startServer({ ...database.env, PORT: `${port}` });
    const running = await doctor({ ...database.env, PORT: `${port}` });
    expect({ code: running.code, failures: running.failures }).toEqual({ code: 0, failures: 0 });
    expect(running.checks.get(`port ${port}`)).toEqual({
      state: 'ok',
      found: 'held by an animal store, which is ready',
    });
    expect(running.checks.get('database')?.found).toContain('the embedded store, which is in use');
    await service.stop();

    const before = traceOf(folder());
    const closed = await doctor(database.env);
    expect(traceOf(folder())).toEqual(before);
    expect({ code: closed.code, warnings: closed.warnings }).toEqual({ code: 0, warnings: 0 });
    expect(closed.checks.get('database')?.found).toContain('which nobody has open');
    expect(closed.checks.get('migrations')).toEqual({
      state: 'ok',
      found: expect.stringMatching(/^all \d+ are applied$/),
    });
    expect(closed.checks.get('keys')).toEqual({ state: 'ok', found: '1 of 1 valid' });
  });

  test('is left without its copy when somebody has no patience, however often they say so', async () => {
    await cli(['migrate'], database.env);
    const TMPDIR = join(folder(), 'tmp');
    mkdirSync(TMPDIR);
    const running = run('cli', ['doctor'], { ...database.env, TMPDIR });
    await eventually(async () => readdirSync(TMPDIR).length > 0);
    running.child.kill('SIGINT');
    running.child.kill('SIGTERM');
    await running.ended;
    expect(readdirSync(TMPDIR)).toEqual([]);
  });

  test('that another release has made, or whose folder is none, is a failure with its reason', async () => {
    mkdirSync(join(folder(), 'postgres'));
    writeFileSync(join(folder(), 'postgres/PG_VERSION'), '12\n');
    const { code, checks } = await doctor(database.env);
    expect(code).toBe(1);
    expect(checks.get('database')).toMatchObject({ state: 'failure', found: expect.stringContaining('PostgreSQL 12') });
    expect(checks.get('keys')?.state).toBe('skipped');

    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const elsewhere = await doctor({ DATA_DIR: join(file, 'store') });
    expect(elsewhere.code).toBe(1);
    expect(elsewhere.checks.get('data folder')?.state).toBe('failure');
  });
});

test('every mistake of the configuration is told, and names that were mistyped, but no secret', async () => {
  const secret = 'a-secret-of-somebody';
  const { code, stdout, checks } = await doctor({
    PORT: '70000',
    DATABASE_POOL_MAX: 'many',
    DATABASE_URL: `postgres://somebody:${secret}@127.0.0.1:1/none`,
    BOOTSTRAP_API_KEY: 'short',
  });
  expect(code).toBe(1);
  const { state, found } = checks.get('configuration') as Found;
  expect(state).toBe('failure');
  for (const name of ['PORT', 'DATABASE_POOL_MAX', 'BOOTSTRAP_API_KEY'])
    expect(found).toMatch(new RegExp(`^ +${name} `, 'm'));
  expect(stdout).not.toMatch(new RegExp(`${secret}|short`));
});

test('names that nobody reads are told, with what was meant, perhaps', async () => {
  const meant = {
    DATABSE_URL: 'DATABASE_URL',
    DATABASE_ULR: 'DATABASE_URL',
    database_url: 'DATABASE_URL',
    LOGLEVEL: 'LOG_LEVEL',
    DATABASE_POOL_SIZE: 'DATABASE_POOL_MAX',
  };
  const env = Object.fromEntries(Object.keys(meant).map((name) => [name, 'a-secret-of-somebody']));
  const { findings, stdout } = await doctor({ DATA_DIR: '/nowhere/at/all', ...env });
  const told = findings.filter(({ check, state }) => check === 'configuration' && state === 'warning');
  expect(told).toEqual(
    Object.entries(meant).map(([name, known]) => ({
      check: 'configuration',
      state: 'warning',
      found: `${name} is no variable of the service: ${known} was meant, perhaps`,
      remedy: `rename it to ${known}, or unset it`,
    })),
  );
  expect(stdout).not.toContain('a-secret-of-somebody');
});

test('a port that something else holds is a failure, whether it answers or not', async () => {
  const web = await listening(createServer((_, response) => response.end('hello')));
  const silent = await listening(createTcpServer());
  for (const PORT of [web, silent]) {
    const { code, checks } = await doctor({ ...database.env, PORT: `${PORT}` });
    expect(code).toBe(1);
    expect(checks.get(`port ${PORT}`)).toEqual({
      state: 'failure',
      found: 'held by something that is no animal store',
      remedy: expect.stringContaining('ss -ltnp'),
    });
  }
  const { checks } = await doctor({ ...database.env, PORT: `${await freePort()}`, HOST: '192.0.2.1' });
  expect([...checks.values()]).toContainEqual(
    expect.objectContaining({ state: 'failure', found: '192.0.2.1 is no address of this machine (HOST).' }),
  );
});

test('a database that cannot be reached is a failure, and so is one that says nothing; what needs it is skipped', async () => {
  const silent = await listening(createTcpServer());
  for (const port of [await freePort(), silent]) {
    const { code, failures, checks } = await doctor({
      DATABASE_URL: `postgres://somebody:a-password@127.0.0.1:${port}/store`,
      DATABASE_CONNECT_TIMEOUT_MS: '500',
      REDIS_URL: 'redis://127.0.0.1:1',
    });
    expect({ code, failures }).toEqual({ code: 1, failures: 1 });
    expect(checks.get('database')).toEqual({
      state: 'failure',
      found: expect.stringMatching(/ECONNREFUSED|timeout/),
      remedy: expect.stringContaining('DATABASE_URL'),
    });
    for (const check of ['migrations', 'tables', 'keys', 'clock']) expect(checks.get(check)?.state).toBe('skipped');
    expect(checks.get('Redis 127.0.0.1:1')).toMatchObject({
      state: 'warning',
      found: expect.stringContaining('ECONNREFUSED'),
    });
  }
});

onServer('a PostgreSQL (skipped on the embedded store)', () => {
  test('is looked at before it is migrated, when it serves, and when ids are behind the rows', async () => {
    const url = (database.env as { DATABASE_URL: string }).DATABASE_URL;
    const manual = { ...database.env, MIGRATE_ON_START: 'false' };
    expect((await doctor(database.env)).checks.get('migrations')?.state).toBe('warning');
    const unmigrated = await doctor(manual);
    expect(unmigrated.checks.get('migrations')).toMatchObject({
      state: 'failure',
      found: expect.stringMatching(/^pending: 2026/),
    });
    expect(unmigrated.checks.get('tables')?.state).toBe('skipped');
    // Nothing has been migrated by looking.
    expect((await cli(['migrate', '--json'], manual)).stdout).toMatch(/^\{"applied":\["2026/);

    await cli(['keys', 'issue', '--name', 'shop'], manual);
    const { code, failures, warnings, checks } = await doctor(manual);
    expect({ code, failures, warnings }).toEqual({ code: 0, failures: 0, warnings: 0 });
    expect([...checks.keys()]).toEqual(
      expect.arrayContaining(['database', 'transport', 'migrations', 'tables', 'connections', 'clock', 'keys']),
    );

    const client = new pg.Client(url);
    await client.connect();
    await client.query(`insert into pet (id, name, category_id, status) values (1000, 'Rex', 5, 'available')`);
    await client.end();
    const behind = await doctor(manual);
    expect(behind.code).toBe(1);
    expect(behind.checks.get('tables')).toMatchObject({
      state: 'failure',
      found: expect.stringContaining('the ids of pet are behind'),
    });
  });
});

test('for people it is a line for each, in colours where they are wanted, and a verdict', async () => {
  const env = { DATA_DIR: '/nowhere/at/all', DATABSE_URL: 'x', PORT: `${await freePort()}` };
  const { stdout } = await cli(['doctor'], env);
  expect(stdout).toMatch(/^warning {2}configuration +DATABSE_URL is no variable.*\n +-> rename it to DATABASE_URL/m);
  expect(stdout).toMatch(/\nfailures: \d, warnings: 1\n$/);
  expect(stdout).not.toContain('\x1b');
  expect((await cli(['doctor'], { ...env, FORCE_COLOR: '1' })).stdout).toContain('\x1b[33mwarning');
});
