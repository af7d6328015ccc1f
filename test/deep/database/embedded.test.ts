import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { engineVersion } from '../../../packages/embedded-postgres/src/engine.ts';
import { cases } from '../../support/cases.ts';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  eventually,
  freePort,
  handledBy,
  onPostgres,
  run,
  type ServerProcess,
  startAndFail,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { linesOf } from '../../support/workers.ts';

const database = databaseForEach(createOwnDatabase);
let env: Env & { DATA_DIR: string };
/** Of the database. */
let folder: string;
beforeEach(() => {
  env = { ...(database.env as { DATA_DIR: string }), BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' };
  folder = join(env.DATA_DIR ?? '', 'postgres');
});

async function create(server: ServerProcess, name: string): Promise<void> {
  const { status } = await rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
  expect(status).toBe(201);
}

/** It may still be taking over. */
function ready({ origin }: ServerProcess): Promise<void> {
  return eventually(async () => (await send(origin, { path: '/readyz' })).status === 200);
}

async function names(server: ServerProcess, limit = 20): Promise<string[]> {
  const { status, json } = await rest(server, `/v1/pets?limit=${limit}`);
  expect(status).toBe(200);
  return json.map(({ name }: { name: string }) => name);
}

const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded('the embedded store (skipped on PostgreSQL, which is not ours to stop)', () => {
  test('is shared by a second server, which takes it over when the first ends, and a third when that is killed', async () => {
    const one = await startServer(env);
    const two = await startServer(env);
    /** The log is written a moment later. */
    const told = async ({ output }: ServerProcess, what: string) => {
      const line = () => linesOf(output.stdout).find(({ msg }) => msg === `embedded store ${what}`);
      await eventually(async () => line() !== undefined);
      return line();
    };
    const opened = (role: string) => ({ role, folder: env.DATA_DIR });
    expect(await told(one, 'opened')).toMatchObject(opened('owner'));
    expect(await told(two, 'opened')).toMatchObject(opened('guest'));
    await create(one, 'Rex');
    expect(await names(two)).toEqual(['Rex']);
    await create(two, 'Bella');
    expect(await names(one)).toEqual(['Rex', 'Bella']);
    await one.stop('SIGTERM');
    await ready(two);
    expect(await names(two)).toEqual(['Rex', 'Bella']);
    expect(await told(two, 'taken over')).toMatchObject(opened('owner'));
    await create(two, 'Coco');
    const three = await startServer(env);
    await two.stop('SIGKILL');
    await ready(three);
    expect(await names(three)).toEqual(['Rex', 'Bella', 'Coco']);
  });

  test('prints one first key when two servers start on it at once, one of them with workers', async () => {
    const { DATA_DIR } = env;
    const servers = await Promise.all([startServer({ DATA_DIR }), startServer({ DATA_DIR, WORKERS: '2' })]);
    const ended = await Promise.all(servers.map((server) => server.stop()));
    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(2).fill({ code: 0, stderr: '' }));
    expect(new Set(ended.flatMap(({ stdout }) => stdout.match(/ask_\w+/g) ?? [])).size).toBe(1);
  });

  test('that another PostgreSQL has made, a damaged one, and what is none are not opened, and left as they are: each start says what to do', async () => {
    const isRefused = async (why: string) => {
      const refused = { code: 1, stdout: '', stderr: `animal-store: The embedded store could not be opened: ${why}\n` };
      expect(await startAndFail(env)).toMatchObject(refused);
      expect(await cli(['keys', 'list'], env)).toMatchObject(refused);
    };
    mkdirSync(folder);
    writeFileSync(join(folder, 'diary.txt'), 'Today I fed the cat.');
    await isRefused(`${folder} is not empty, and holds no database (PG_VERSION is missing).`);
    expect(readdirSync(folder)).toEqual(['diary.txt']);
    rmSync(folder, { recursive: true });

    const first = await startServer(env);
    await create(first, 'Rex');
    await first.stop('SIGKILL');
    expect(readdirSync(env.DATA_DIR)).toEqual(expect.arrayContaining(['.s.PGSQL.5432', 'lock', 'migration.lock']));
    const version = join(folder, 'PG_VERSION');
    const mine = readFileSync(version, 'utf8');
    expect(mine.trim()).toBe(engineVersion);
    writeFileSync(version, '17\n');
    await isRefused(
      `${folder} was made by PostgreSQL 17, and this release has PostgreSQL ${engineVersion}. Nothing was changed. ` +
        'Back it up with the release that made it, and restore the backup into a new DATA_DIR.',
    );
    writeFileSync(version, mine);
    // What SQLite leaves of a transaction, and what is no socket at all: neither keeps it from being opened.
    writeFileSync(join(env.DATA_DIR, 'lock-journal'), '');
    rmSync(join(env.DATA_DIR, '.s.PGSQL.5432'));
    writeFileSync(join(env.DATA_DIR, '.s.PGSQL.5432'), '');
    const again = await startServer(env);
    expect(await names(again)).toEqual(['Rex']);
    await again.stop();

    writeFileSync(join(folder, 'global', 'pg_control'), Buffer.alloc(8192));
    await isRefused(
      `PostgreSQL cannot start on ${folder} (PGlite failed to initialize properly): a file of it may be damaged or ` +
        'missing. Restore a backup into a new DATA_DIR.',
    );
  });

  /**
   * What is there when the process is killed: nothing but a lock, a part of the folder, all of it, a server. One of them
   * in `npm test`, any; all in `npm run test:deep`.
   */
  const moments: Array<[string, () => boolean]> = [
    ['it has the lock', () => existsSync(join(env.DATA_DIR, 'lock'))],
    ['the folder is there', () => existsSync(folder)],
    ['the folder says its version', () => existsSync(join(folder, 'PG_VERSION'))],
    ['the folder holds tables', () => existsSync(join(folder, 'base')) && readdirSync(join(folder, 'base')).length > 0],
    ['it is open', () => existsSync(join(folder, 'postmaster.pid'))],
    ['it listens', () => existsSync(join(env.DATA_DIR, '.s.PGSQL.5432'))],
    ['it migrates', () => existsSync(join(env.DATA_DIR, 'migration.lock'))],
  ];

  const count = cases(moments.length);
  const first = Math.floor(Math.random() * (moments.length - count + 1));
  test.each(moments.slice(first, first + count))(
    'it starts again after the first start was killed when %s',
    async (_when, isSo) => {
      const killed = run('main', [], { ...env, PORT: `${await freePort()}` });
      while (!isSo() && killed.child.exitCode === null) await pause(1);
      killed.child.kill('SIGKILL');
      expect((await killed.ended).signal).toBe('SIGKILL');
      const server = await startServer(env);
      await create(server, 'Rex');
      expect(await names(server)).toEqual(['Rex']);
    },
  );

  test('takes less than 640 MB at a first start and at a later one, as docs/operate.md says', async () => {
    for (const start of ['first', 'later']) {
      const server = await startServer({ ...env, LOG_LEVEL: 'silent' });
      await Promise.all(Array.from({ length: 100 }, () => create(server, 'x'.repeat(1000))));
      for (let round = 0; round < 5; round += 1) expect(await names(server, 100)).toHaveLength(100);
      // The most that it has had in memory (proc(5)).
      const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
      const megabytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
      expect([start, megabytes < 640]).toEqual([start, true]);
      expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
    }
  });

  // With workers the engine is the parent's.
  test.each([1, 2])(
    'ends the service with it when its engine traps, and loses nothing, with %i workers',
    async (workers) => {
      const server = await startServer({ ...env, WORKERS: `${workers}` });
      await create(server, 'Rex');
      const guest = new pg.Client({ host: env.DATA_DIR, user: 'postgres', database: 'postgres' });
      guest.on('error', () => undefined);
      await guest.connect();
      // A number is no address: WebAssembly's word is "memory access out of bounds", of which V8 makes an exception by way
      // of SIGSEGV.
      await guest.query("create function trap(int) returns int language internal strict as 'textlen'");
      await expect(guest.query('select trap(2147483000)')).rejects.toThrow('Connection terminated unexpectedly');
      const { code, stderr } = await server.ended;
      expect({ code, stderr }).toEqual({ code: 1, stderr: 'animal-store: The embedded store has stopped working.\n' });
      expect(await names(await startServer(env))).toEqual(['Rex']);
    },
  );
});

test('a fault of the process ends it', async () => {
  const server = await startServer(env);
  expect(handledBy(server, ['SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTRAP', 'SIGABRT'])).toEqual([]);
  // V8 has a handler for this one, by which it notices traps.
  expect(await server.stop('SIGSEGV')).toMatchObject({ code: null, signal: 'SIGSEGV' });
});
