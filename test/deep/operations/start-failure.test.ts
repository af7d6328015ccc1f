import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseUnavailable } from '../../../packages/postgres/src/errors.ts';
import { tryAgain } from '../../../src/errors.ts';
import { startFailure } from '../../../src/start-failure.ts';
import { createOwnDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { cli, freePort, killAll, startAndFail } from '../../support/process.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await killAll();
  await database.drop();
});

test('a configuration that cannot be used is refused with one message that lists every mistake', async () => {
  const env = {
    PORT: '70000',
    DATABASE_URL: 'mysql://shop@127.0.0.1/shop',
    DATABASE_POOL_MAX: 'many',
    DRAIN_TIMEOUT_MS: '-1',
    BOOTSTRAP_API_KEY: 'short',
    LOG_LEVEL: 'loud',
    CORS_ORIGINS: 'https://shop.example/path',
    MIGRATE_ON_START: 'perhaps',
  };
  for (const ended of [await startAndFail(env), await cli(['keys', 'list'], env)]) {
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    const [title, ...mistakes] = ended.stderr.trim().split('\n');
    expect(title).toBe('animal-store: Configuration error:');
    expect(mistakes.map((line) => line.trim().split(' ', 1)[0]).sort()).toEqual(Object.keys(env).sort());
    expect(ended.stderr).not.toContain('short');
  }
});

test.each(['', 'OPERATIONS_'])(
  'a port that is taken is named in one line, with workers, too: %sPORT',
  async (which) => {
    const holder = await listening();
    const { port } = holder.address() as { port: number };
    const env = { ...database.env, [`${which}PORT`]: `${port}`, LOG_LEVEL: 'error' };
    for (const WORKERS of ['1', '3']) {
      const stderr = `animal-store: Port ${port} on 127.0.0.1 is taken (${which}PORT, ${which}HOST).\n`;
      expect(await startAndFail({ ...env, WORKERS })).toMatchObject({ code: 1, stderr });
    }
    holder.close();
    const nowhere = { ...env, [`${which}HOST`]: '203.0.113.77' };
    const stderr = `animal-store: 203.0.113.77 is no address of this machine (${which}HOST).\n`;
    expect(await startAndFail(nowhere)).toMatchObject({ code: 1, stdout: '', stderr });
  },
);

test('with workers, too, a mistake is told once', async () => {
  const env = { ...database.env, WORKERS: '3' };
  expect((await startAndFail({ ...env, LOG_LEVEL: 'loud' })).stderr.match(/LOG_LEVEL/g)).toHaveLength(1);
  const { code, stderr } = await startAndFail({ ...env, TRUSTED_DOCUMENTS: '/nowhere/manifest.json' });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^animal-store: .*manifest\.json.*\n$/);
});

test.each(['127.0.0.1', 'localhost'])('a database that cannot be reached on %s is said in one line', async (host) => {
  const port = await freePort();
  const env = { DATABASE_URL: `postgres://shop:secret@${host}:${port}/shop` };
  for (const ended of [await startAndFail(env), await cli(['migrate'], env)]) {
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^animal-store: The database \(DATABASE_URL\) cannot be reached: .*ECONNREFUSED.*\n$/);
    expect(ended.stderr).not.toContain('secret');
  }
});

test('a data folder that cannot be written is named in one line', async () => {
  const { DATA_DIR: folder } = await embedded();
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const DATA_DIR = join(file, 'data');
  for (const ended of [await startAndFail({ DATA_DIR }), await cli(['keys', 'list'], { DATA_DIR })]) {
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^animal-store: The data folder .*data \(DATA_DIR\) cannot be written: .*\n$/);
    expect(ended.stderr).toContain(DATA_DIR);
  }
});

test('a data folder that is no store of ours is said in one line', async () => {
  const { DATA_DIR } = await embedded();
  writeFileSync(join(DATA_DIR, 'lock'), 'not a lock');
  const ended = await startAndFail({ DATA_DIR });
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toMatch(/^animal-store: The embedded store could not be opened: .*\n$/);
});

/** A folder that nobody has opened, whatever database this run is on. */
async function embedded(): Promise<{ DATA_DIR: string }> {
  await database.drop();
  database = await createOwnDatabase('');
  return database.env as { DATA_DIR: string };
}

function listening(): Promise<Server> {
  return new Promise((done) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => done(server));
  });
}

test('a database that is lost during a command is named with the reason, also when the client would be told to try again', () => {
  const cause = new Error('Connection terminated unexpectedly');
  const told = 'The database (DATABASE_URL) cannot be reached: Connection terminated unexpectedly';
  expect(startFailure(new DatabaseUnavailable('Try again.', cause))).toBe(told);
  expect(startFailure(tryAgain('Try again.', cause))).toBe(told);
});
