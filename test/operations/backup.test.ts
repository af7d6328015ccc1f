import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.ts';
import { contentsOf, foldersForEach, onceMore, sessionWith, usedStoreIn } from '../support/embedded.ts';
import { describe, expect, test } from '../support/jest.ts';
import { openNode } from '../support/migrations.ts';
import {
  cli,
  eventually,
  onPlainPostgres,
  onPostgres,
  run,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import { rest } from '../support/rest.ts';

const BOOTSTRAP_API_KEY = 'a-key-for-these-tests-and-no-others';
const folders = foldersForEach();
const env = () => ({ DATA_DIR: folders.store, BOOTSTRAP_API_KEY });
const create = (server: ServerProcess, name: string) =>
  rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });

/** Files that a run to this name has begun and not finished. */
const partialsOf = (file: string) =>
  readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.partial-`));

(onPostgres ? describe.skip : describe)(
  'a backup of the embedded store (skipped on PostgreSQL, which has its own)',
  () => {
    test('is the same whether the service runs or not, is readable by its owner only, and appears whole', async () => {
      const server = await startServer(env());
      await create(server, 'Rex');
      const file = folders.file('running.sql');
      const running = await cli(['backup', file, '--json'], env());
      expect(running).toMatchObject({ code: 0, stderr: '' });
      const { tables, bytes } = JSON.parse(running.stdout);
      expect(tables).toContainEqual({ table: 'pet', rows: 1, sha256: expect.stringMatching(/^[\da-f]{64}$/) });
      expect(bytes).toBe(statSync(file).size);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(partialsOf(file)).toEqual([]);
      await server.stop();
      const stopped = await cli(['backup', folders.file('stopped.sql')], env());
      expect(stopped).toMatchObject({ code: 0, stderr: '' });
      expect(stopped.stdout).toMatch(
        /^table .*\n(?:\w+ +\d+ +[\da-f]{16}\n)+.*stopped\.sql: \d+ bytes; requests waited \d+ ms\n$/,
      );
      expect(readFileSync(folders.file('stopped.sql'), 'utf8')).toBe(readFileSync(file, 'utf8'));
      const streamed = await cli(['backup', '-'], env());
      expect(streamed).toMatchObject({ code: 0, stdout: readFileSync(file, 'utf8') });
    });

    test('overwrites a file only with --force, and makes no store where there is none', async () => {
      expect(await cli(['backup', folders.file('none.sql')], env())).toMatchObject({
        code: 1,
        stderr: `animal-store: There is no store in ${folders.store} (DATA_DIR).\n`,
      });
      expect(existsSync(folders.store)).toBe(false);
      await usedStoreIn(folders.store);
      const file = folders.file('taken.sql');
      writeFileSync(file, 'mine');
      expect(await cli(['backup', file], env())).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `animal-store: ${file} exists; --force overwrites it.\n`,
      });
      expect(readFileSync(file, 'utf8')).toBe('mine');
      expect(await cli(['backup', file, '--force'], env())).toMatchObject({ code: 0 });
      expect(readFileSync(file, 'utf8')).toMatch(/^-- animal-store backup 1 .*\n-- complete \{.*\}\n$/s);
      // A device, a pipe or a link is replaced by nothing; this link leads nowhere.
      const link = folders.file('link.sql');
      symlinkSync(folders.file('nowhere'), link);
      expect(await cli(['backup', link, '--force'], env())).toMatchObject({
        code: 1,
        stderr: `animal-store: ${link} is no ordinary file: it is left as it is.\n`,
      });
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
    });

    test('that is killed leaves no file of that name, and neither who uses the store nor the next backup minds', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      // It waits for the store in the middle of its work.
      const holder = await sessionWith(folders.store);
      await holder.query('begin');
      const file = folders.file('killed.sql');
      const { child, ended } = run('cli', ['backup', file], env());
      await eventually(async () => partialsOf(file).length === 1);
      child.kill('SIGKILL');
      expect(await ended).toMatchObject({ code: null, signal: 'SIGKILL' });
      expect(existsSync(file)).toBe(false);
      // Two at once to the same file: each is complete, and the later one stays.
      const others = [run('cli', ['backup', file], env()), run('cli', ['backup', file], env())];
      await eventually(async () => partialsOf(file).length === 3);
      await holder.query('rollback');
      await holder.end();
      for (const other of others) expect(await other.ended).toMatchObject({ code: 0 });
      expect(partialsOf(file)).toHaveLength(1);
      expect(readFileSync(file, 'utf8')).toMatch(/\n-- complete .*\n$/);
      await user.ping();
      await user.close();
    });

    test('has all that was acknowledged before it, and nothing without what came before that, while others write', async () => {
      const server = await startServer(env());
      const acknowledged: bigint[] = [];
      let isOver = false;
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let at = 0; !isOver; at += 1) acknowledged.push((await create(server, `pet ${writer} ${at}`)).json.id);
      });
      await eventually(async () => acknowledged.length >= 50);
      const before = [...acknowledged];
      const file = folders.file('busy.sql');
      expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });
      const enough = acknowledged.length + 50;
      await eventually(async () => acknowledged.length >= enough);
      isOver = true;
      await Promise.all(writers);
      const [, rows = ''] = /\ncopy "pet" \(.*?\) from stdin;\n(.*?)\\\.\n/s.exec(readFileSync(file, 'utf8')) ?? [];
      const ids = rows
        .trim()
        .split('\n')
        .map((line) => Number(line.split('\t')[0]));
      // Ids are given out in order, and nothing is removed: no hole up to the last one.
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, at) => at + 1));
      expect(ids.length).toBeGreaterThanOrEqual(Math.max(...before.map(Number)));
      expect(ids.length).toBeLessThan(acknowledged.length);
    });

    test('is not made of what it does not know: that is named', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      const session = await sessionWith(folders.store);
      await session.query('create view cheap as select * from pet');
      await session.end();
      await user.close();
      expect(await cli(['backup', folders.file('view.sql')], env())).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('would be lost: view cheap'),
      });
      expect(existsSync(folders.file('view.sql'))).toBe(false);
      expect(partialsOf(folders.file('view.sql'))).toEqual([]);
    });
  },
);

test('with DATABASE_URL set, the tool of PostgreSQL is named instead', async () => {
  const withUrl = { DATABASE_URL: 'postgres://shop:secret@127.0.0.1:1/shop' };
  const backup = await cli(['backup', 'shop.dump'], withUrl);
  expect(backup).toMatchObject({ code: 1, stdout: '' });
  expect(backup.stderr).toBe(
    'animal-store: DATABASE_URL is set, and PostgreSQL has its own tools: pg_dump --format=custom --file=shop.dump "$DATABASE_URL"\n',
  );
  expect((await cli(['restore', 'shop.sql'], withUrl)).stderr).toContain(
    'psql -v ON_ERROR_STOP=1 -f shop.sql "$DATABASE_URL"',
  );
});

(onPlainPostgres ? test : test.skip)(
  'psql reads a backup into an empty PostgreSQL, on which the service goes on (PostgreSQL only, without a pooler)',
  async () => {
    const { key, contents } = await usedStoreIn(folders.store);
    const file = folders.file('for-psql.sql');
    expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });

    const database = await createTestDatabase();
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    try {
      await promisify(execFile)('psql', ['-q', '-X', '-v', 'ON_ERROR_STOP=1', '-f', file, DATABASE_URL]);
      const target = await sessionWith(DATABASE_URL);
      expect(await contentsOf(target)).toEqual(contents);
      await target.end();
      const moved = { ...(await startServer({ DATABASE_URL })), key };
      const replayed = await rest(moved, '/v1/pets', onceMore);
      expect(replayed.headers['idempotent-replayed']).toBe('true');
      expect(replayed.json.id).toBe(29);
      expect((await create(moved, 'next')).json.id).toBe(30);
      await moved.stop();
    } finally {
      await database.drop();
    }
  },
);
