import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cases } from '../../support/cases.ts';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { cli, type Env, freePort, onPostgres, run, startAndFail, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** Folders that can be opened, and folders that cannot: then it is said which one, and what to do. */
const database = databaseForEach(createOwnDatabase);
let env: Env & { DATA_DIR: string };
let folder: string;
beforeEach(() => {
  env = { ...(database.env as { DATA_DIR: string }), BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' };
  folder = join(env.DATA_DIR, 'postgres');
});

const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const said = (text: string) => ({ code: 1, stdout: '', stderr: `animal-store: ${text}\n` });
const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded('the embedded store (skipped on PostgreSQL, which has its own)', () => {
  test('that another PostgreSQL has made is left as it is, and a damaged one is not opened: both say what to do', async () => {
    const { engineVersion } = await import('../../../packages/embedded-postgres/src/engine.ts');
    const could = (why: string) => said(`The embedded store could not be opened: ${why}`);
    const first = await startServer(env);
    const { json: rex } = await rest(first, '/v1/pets', newPet);
    await first.stop();
    const version = join(folder, 'PG_VERSION');
    const mine = readFileSync(version, 'utf8');
    expect(mine.trim()).toBe(engineVersion);
    writeFileSync(version, '17\n');
    const other = could(
      `${folder} was made by PostgreSQL 17, and this release has PostgreSQL ${engineVersion}. Nothing was changed. ` +
        'Back it up with the release that made it, and restore the backup into a new DATA_DIR.',
    );
    expect(await startAndFail(env)).toMatchObject(other);
    expect(await cli(['keys', 'list'], env)).toMatchObject(other);
    writeFileSync(version, mine);
    const again = await startServer(env);
    expect((await rest(again, '/v1/pets')).json).toEqual([rex]);
    await again.stop();

    writeFileSync(join(folder, 'global', 'pg_control'), Buffer.alloc(8192));
    const damaged = could(
      `PostgreSQL cannot start on ${folder} (PGlite failed to initialize properly): a file of it may be damaged or ` +
        'missing. Restore a backup into a new DATA_DIR.',
    );
    expect(await startAndFail(env)).toMatchObject(damaged);
  });

  test('a folder that holds something else is left as it is', async () => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'diary.txt'), 'Today I fed the cat.');
    const message = `The embedded store could not be opened: ${folder} is not empty, and holds no database (PG_VERSION is missing).`;
    expect(await startAndFail(env)).toMatchObject(said(message));
    expect(readdirSync(folder)).toEqual(['diary.txt']);
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
      const { json: rex } = await rest(server, '/v1/pets', newPet);
      expect((await rest(server, '/v1/pets')).json).toEqual([rex]);
    },
  );
});
