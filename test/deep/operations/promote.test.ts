// runs: embedded, postgres

import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { promote } from '../../../src/backup/promote.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { modelOf } from '../../../src/modules/mikro-orm.config.ts';
import { modules } from '../../../src/modules/modules.ts';
import {
  createTestDatabase,
  type TestDatabase,
} from '../../support/database.ts';
import {
  contentsOf,
  foldersForEach,
  onceMore,
  sessionWith,
  usedStoreIn,
} from '../../support/embedded.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import {
  cli,
  type Ended,
  eventually,
  freePort,
  onPlainPostgres,
  run,
  startAndFail,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { Road } from '../../support/road.ts';

const folders = foldersForEach();
const env = () => ({ DATA_DIR: folders.store });
const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

let database: TestDatabase;
let url: string;
const title =
  'promoting an embedded store (needs a PostgreSQL without a pooler: skipped elsewhere)';
(onPlainPostgres ? describe : describe.skip)(title, () => {
  beforeEach(async () => {
    database = await createTestDatabase();
    url = (database.env as { DATABASE_URL: string }).DATABASE_URL;
  });
  afterEach(() => database.drop());

  async function contentsOfTarget() {
    const session = await sessionWith(url);
    const contents = await contentsOf(session);
    await session.end();
    return contents;
  }

  test('moves every value, counter and key, and retires the store; a repetition detects the copy, and the service continues there', async () => {
    const { key, contents } = await usedStoreIn(folders.store);
    const withPassword = new URL(url);
    withPassword.password = 'a-secret-of-the-database';
    const promoted = await cli(['promote', withPassword.href], env());
    expect(promoted).toMatchObject({ code: 0, stderr: '' });
    expect(promoted.stdout).toMatch(
      /^table .*\n(?:\w+ +\d+ +[\da-f]{16}\n)+.* is the same; start the service with DATABASE_URL now\n$/,
    );
    expect(promoted.stdout).not.toContain('a-secret');
    expect(await contentsOfTarget()).toEqual(contents);

    // No process can write to the retired store by mistake, but it can be
    // backed up.
    const { host, pathname } = new URL(url);
    const retired = `The data of ${folders.store} are in ${host}${pathname} now: set DATABASE_URL. To use this store again nevertheless, remove ${folders.store}/retired.`;
    for (const ended of [
      await startAndFail(env()),
      await cli(['keys', 'list'], env()),
    ]) {
      expect(ended).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `animal-store: ${retired}\n`,
      });
    }
    expect(
      await cli(['backup', folders.file('retired.ndjson')], env()),
    ).toMatchObject({ code: 0, stderr: '' });
    expect((await cli(['promote', url], env())).stderr).toBe(
      `animal-store: ${retired}\n`,
    );

    // As if it had been killed between the two commits: its last change to the
    // store is undone.
    rmSync(`${folders.store}/retired`);
    expect(await cli(['keys', 'list'], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    const { code, stdout } = await cli(['promote', url, '--json'], env());
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 0,
      wasThere: true,
    });
    expect(existsSync(`${folders.store}/retired`)).toBe(true);
    expect(await contentsOfTarget()).toEqual(contents);

    const server = { ...(await startServer({ DATABASE_URL: url })), key };
    const replayed = await rest(server, '/v1/pets', onceMore);
    expect([replayed.headers['idempotent-replayed'], replayed.json.id]).toEqual(
      ['true', 29],
    );
    expect((await rest(server, '/v1/pets', newPet)).json.id).toBe(30);
    rmSync(`${folders.store}/retired`);
    expect((await cli(['promote', url], env())).stderr).toMatch(
      /is not empty: /,
    );
  });

  test('accepts empty tables of the service, keeps other tables, and refuses a target with rows or with less TLS than required', async () => {
    await usedStoreIn(folders.store);
    const { database: empty } = await openNode(database);
    await empty.migrate();
    await empty.close();
    const plain =
      'The database (DATABASE_URL) cannot be reached: The server does not support SSL connections';
    expect(
      await cli(['promote', `${url}?sslmode=require`], env()),
    ).toMatchObject({
      code: 1,
      stderr: `animal-store: ${plain}\n`,
    });
    const target = await sessionWith(url);
    await target.query(
      `insert into pet (name, category_id, status) values ('theirs', 1, 'sold')`,
    );
    const { code, stderr } = await cli(['promote', url], env());
    expect({ code, isRetired: existsSync(`${folders.store}/retired`) }).toEqual(
      { code: 1, isRetired: false },
    );
    expect(stderr).toMatch(
      /is not empty: pet has 1 rows\. Promote to a new database\.\n$/,
    );
    await target.query(
      'delete from pet; create table theirs (id int); insert into theirs values (7)',
    );
    expect(await cli(['promote', url], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect((await target.query('select id from theirs')).rows).toEqual([
      { id: 7 },
    ]);
    await target.end();
  });

  test('refuses a store that is in use, because later writes to it would be lost', async () => {
    const { database: user } = await openNode({ env: env() });
    expect(await cli(['promote', url], env())).toMatchObject({
      code: 1,
      stderr: `animal-store: Another process has the store in ${folders.store} open. Stop it, and run this again.\n`,
    });
    await user.ping();
    await user.close();
  });

  test('admits no other process until it is done, even when the target pauses at any step', async () => {
    const { contents } = await usedStoreIn(folders.store);
    const steps = [
      'mikro_orm_migrations',
      'lock table',
      'insert into "pet"',
      'setval',
      'declare',
      'select 1',
      'commit',
    ];
    const left = new Set(steps);
    const gate = await startGate(url, async (bytes) => {
      const step = [...left].find((text) => bytes.includes(text));
      if (!step) return;
      left.delete(step);
      await pause(300);
      await expect(sessionWith(folders.store)).rejects.toThrow(/ENOENT/);
    });
    const impatient = { ...loadConfig(env()).database, maxSilence: 50 };
    const target = {
      ...loadConfig({ DATABASE_URL: gate.url }).database,
      url: gate.url,
    };
    let late: Promise<Ended> | undefined;
    const promoted = promote(impatient, target, modelOf(modules), () => {
      late ??= cli(['keys', 'issue', '--name', 'late'], env());
    });
    expect(await promoted).toMatchObject({ wasThere: false });
    gate.close();
    expect([...left]).toEqual([]);
    const stderr = expect.stringContaining('set DATABASE_URL');
    expect(await late).toMatchObject({ code: 1, stdout: '', stderr });
    expect(await contentsOfTarget()).toEqual(contents);
  });

  test('leaves no row when it is killed in the middle, and a repetition completes it', async () => {
    const { contents } = await usedStoreIn(folders.store);
    let passed = 0;
    const road = new Road(new URL(url), ({ length }) => {
      passed += length;
      road.isSilent = passed > 400_000;
    });
    await road.open();
    const { child, ended } = run('cli', ['promote', road.url], env());
    await eventually(async () => road.isSilent);
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({ signal: 'SIGKILL' });
    road.cut();
    expect((await contentsOfTarget()).pet).toEqual([]);
    expect(await cli(['promote', url], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await contentsOfTarget()).toEqual(contents);
  });
});

/**
 * Starts a proxy to a PostgreSQL that forwards each chunk of a client after
 * `pass` has resolved.
 */
async function startGate(
  target: string,
  pass: (bytes: Buffer) => Promise<void>,
) {
  const url = new URL(target);
  const [port, own] = [Number(url.port), await freePort()];
  const server = createServer((client) => {
    const upstream = connect(port, url.hostname);
    for (const socket of [client, upstream])
      socket.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    upstream.pipe(client);
    let passed = Promise.resolve();
    client.on('data', (bytes) => {
      passed = passed
        .then(() => pass(bytes))
        .then(() => void upstream.write(bytes));
    });
  }).listen(own, '127.0.0.1');
  await once(server, 'listening');
  url.port = `${own}`;
  return { url: url.href, close: () => server.close() };
}
