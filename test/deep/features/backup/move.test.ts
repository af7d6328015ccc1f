// runs: embedded, postgres

import { readFileSync, rmSync } from 'node:fs';
import {
  createTestDatabase,
  type TestDatabase,
} from '../../../support/database.ts';
import { foldersForEach } from '../../../support/fixtures.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import { openNode } from '../../../support/migrations.ts';
import {
  cli,
  eventually,
  onPlainPostgres,
  run,
  startAndFail,
  startServer,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { TcpProxy } from '../../../support/servers/tcp-proxy.ts';
import { sessionWith } from '../../../support/session.ts';
import { contentsOf, onceMore, usedStoreIn } from './used-store.ts';

const folders = foldersForEach();
const env = () => ({ DATA_DIR: folders.store });
const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

let database: TestDatabase;
let url: string;
const title =
  'moving an embedded store to a PostgreSQL (needs a PostgreSQL without a pooler: skipped elsewhere)';
(onPlainPostgres ? describe : describe.skip)(title, () => {
  beforeEach(async () => {
    database = await createTestDatabase();
    url = (database.env as { DATABASE_URL: string }).DATABASE_URL;
  });
  afterEach(() => database.drop());

  const target = () => ({ DATABASE_URL: url });

  async function backupFile() {
    await usedStoreIn(folders.store);
    const file = folders.file('store.ndjson');
    await cli(['backup', file], env());
    return file;
  }

  async function contentsOfTarget() {
    const session = await sessionWith(url);
    const contents = await contentsOf(session);
    await session.end();
    return contents;
  }

  test('moves every value, counter and key, and retires the store; a repetition detects the copy, and the service continues there', async () => {
    const { key, contents } = await usedStoreIn(folders.store);
    const file = folders.file('store.ndjson');
    const retired = await cli(['backup', '--retire', file], env());
    expect(retired).toMatchObject({ code: 0, stderr: '' });
    const restored = await cli(['restore', file], target());
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    expect(restored.stdout).toMatch(
      /^table .*\n(?:\w+ +\d+ +[\da-f]{16}\n)+restored and compared\n$/,
    );
    expect(await contentsOfTarget()).toEqual(contents);

    // No process can write to the retired store by mistake, but it can be
    // backed up.
    const moved = `This store was moved: set DATABASE_URL, or DATA_DIR, to its new place. To use this store again nevertheless, remove ${folders.store}/retired.`;
    for (const ended of [
      await startAndFail(env()),
      await cli(['keys', 'list'], env()),
      await cli(['restore', file], env()),
    ]) {
      expect(ended).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `animal-store: ${moved}\n`,
      });
    }
    const again = folders.file('again.ndjson');
    expect(await cli(['backup', '--retire', again], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(readFileSync(again)).toEqual(readFileSync(file));

    // As if it had been killed after its commit.
    expect(await cli(['restore', file], target())).toEqual(restored);
    expect(await contentsOfTarget()).toEqual(contents);

    const server = { ...(await startServer(target())), key };
    const replayed = await rest(server, '/v1/pets', onceMore);
    expect([replayed.headers['idempotent-replayed'], replayed.json.id]).toEqual(
      ['true', 29],
    );
    expect((await rest(server, '/v1/pets', newPet)).json.id).toBe(30);
    const { host, pathname } = new URL(url);
    expect(await cli(['restore', file], target())).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `The store in ${host}${pathname} (DATABASE_URL) is not empty: `,
      ),
    });
    rmSync(`${folders.store}/retired`);
    expect(await cli(['keys', 'list'], env())).toMatchObject({ code: 0 });
  });

  test('accepts empty tables of the service, keeps other tables, and refuses a target with rows or with less TLS than required', async () => {
    const file = await backupFile();
    const { database: empty } = await openNode(database);
    await empty.migrate();
    await empty.close();
    const plain =
      'The database (DATABASE_URL) cannot be reached: The server does not support SSL connections';
    expect(
      await cli(['restore', file], { DATABASE_URL: `${url}?sslmode=require` }),
    ).toMatchObject({ code: 1, stderr: `animal-store: ${plain}\n` });
    const session = await sessionWith(url);
    await session.query(
      `insert into pet (name, category_id, status) values ('theirs', 1, 'sold')`,
    );
    const { code, stderr } = await cli(['restore', file], target());
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /is not empty: pet has 1 rows\. Restore into a new one\.\n$/,
    );
    // A store in use is refused without a lock on its tables.
    await session.query('begin; lock table pet in row exclusive mode');
    expect(await cli(['restore', file], target())).toMatchObject({ code: 1 });
    await session.query('commit');
    await session.query(
      'delete from pet; create table theirs (id int); insert into theirs values (7)',
    );
    expect(await cli(['restore', file], target())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect((await session.query('select id from theirs')).rows).toEqual([
      { id: 7 },
    ]);
    await session.end();
  });

  test('refuses a database in another encoding', async () => {
    const file = await backupFile();
    const session = await sessionWith(url);
    const name = 'animal_store_latin1';
    await session.query(`drop database if exists ${name}`);
    await session.query(
      `create database ${name} template template0 encoding latin1 locale 'C'`,
    );
    const other = new URL(url);
    other.pathname = name;
    const DATABASE_URL = other.href;
    expect(await cli(['restore', file], { DATABASE_URL })).toMatchObject({
      code: 1,
      stderr: `animal-store: The database ${other.host}/${name} (DATABASE_URL) is encoded in LATIN1; it must be in UTF8. Create another one.\n`,
    });
    await session.query(`drop database ${name}`);
    await session.end();
  });

  test('leaves no row when it is killed in the middle, and a repetition completes it', async () => {
    const { contents } = await usedStoreIn(folders.store);
    const file = folders.file('store.ndjson');
    await cli(['backup', file], env());
    let passed = 0;
    const proxy = new TcpProxy(new URL(url), ({ length }) => {
      passed += length;
      proxy.isSilent = passed > 400_000;
    });
    await proxy.open();
    const DATABASE_URL = proxy.url;
    const { child, ended } = run('cli', ['restore', file], { DATABASE_URL });
    await eventually(async () => proxy.isSilent);
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({ signal: 'SIGKILL' });
    proxy.cut();
    expect((await contentsOfTarget()).pet).toEqual([]);
    expect(await cli(['restore', file], target())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await contentsOfTarget()).toEqual(contents);
  });
});
