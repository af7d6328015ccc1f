import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { restoreFrom } from '../../src/commands/backup/restore.ts';
import { loadConfig } from '../../src/config.ts';
import { modelOf } from '../../src/mikro-orm.config.ts';
import { modules } from '../../src/modules.ts';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { Database } from '../../src/storage/database/database.ts';
import { contentsOf, foldersForEach, onceMore, sessionWith, usedStoreIn } from '../support/embedded.ts';
import { describe, expect, test } from '../support/jest.ts';
import { migrationOf, openNode } from '../support/migrations.ts';
import { cli, onPostgres, startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

const BOOTSTRAP_API_KEY = 'a-key-for-these-tests-and-no-others';
const folders = foldersForEach();
const env = () => ({ DATA_DIR: folders.store, BOOTSTRAP_API_KEY });
const said = (text: string) => ({ code: 1, stdout: '', stderr: `animal-store: ${text}\n` });
const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

let one: Promise<string> | undefined;

/** A backup of a store with one animal: it is made once. */
async function backupOfOne(): Promise<string> {
  const file = folders.file('one.sql');
  one ??= make();
  writeFileSync(file, await one);
  return file;

  async function make() {
    const { database } = await openNode({ env: env() });
    await database.migrate();
    await database.rows(insertRex, []);
    await database.close();
    expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });
    rmSync(folders.store, { recursive: true });
    return readFileSync(file, 'utf8');
  }
}

const insertRex = { name: 'rex', text: `insert into pet (name, category_id, status) values ('Rex', 1, 'available')` };

/** What a store holds. */
async function petsIn(DATA_DIR: string): Promise<unknown[]> {
  const { database } = await openNode({ env: { DATA_DIR } });
  await database.migrate();
  const rows = await database.rows({ name: 'all', text: 'select * from pet' }, []);
  await database.close();
  return rows;
}

(onPostgres ? describe.skip : describe)('restoring (skipped on PostgreSQL, which has its own)', () => {
  test('brings back every value, definition, counter and key, and the store goes on', async () => {
    const { key, contents } = await usedStoreIn(folders.store);
    const file = folders.file('odd.sql');
    expect(await cli(['backup', file], env())).toMatchObject({ code: 0, stderr: '' });

    const DATA_DIR = await folders.another();
    const restored = await cli(['restore', file, '--json'], { DATA_DIR });
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(restored.stdout)).toMatchObject({ file, applied: [] });
    const again = { ...(await startServer({ DATA_DIR })), key };
    expect(again.output.stdout).not.toContain('API key');
    const copy = await sessionWith(DATA_DIR);
    expect(await contentsOf(copy)).toEqual(contents);
    await copy.end();
    const replayed = await rest(again, '/v1/pets', onceMore);
    expect(replayed.headers['idempotent-replayed']).toBe('true');
    expect(replayed.json.id).toBe(29);
    expect((await rest(again, '/v1/pets', newPet)).json.id).toBe(30);
    await again.stop();
    const command = [resolve('node_modules/.bin/mikro-orm'), 'migration:check'];
    const { stdout } = await promisify(execFile)(process.execPath, command, {
      env: { PATH: process.env.PATH, DATA_DIR },
    });
    expect(stdout).toContain('No changes required, schema is up-to-date');
  });

  test('works while a service runs on the empty store, which then serves what was restored', async () => {
    const file = await backupOfOne();
    const DATA_DIR = await folders.another();
    const server = await startServer({ DATA_DIR, BOOTSTRAP_API_KEY });
    expect((await rest(server, '/v1/pets')).json).toEqual([]);
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject({ code: 0 });
    const rex = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
    expect((await rest(server, '/v1/pets')).json).toEqual([rex]);
    expect((await rest(server, '/v1/pets', newPet)).json).toEqual({ ...rex, id: 2 });
  });

  test('refuses a store that holds anything, and leaves it as it is', async () => {
    const file = await backupOfOne();
    expect(await cli(['restore', file], env())).toMatchObject({ code: 0, stderr: '' });
    const full = `The store in ${folders.store} (DATA_DIR) is not empty: pet has 1 rows. Restore into a new folder: DATA_DIR=...`;
    expect(await cli(['restore', file], env())).toMatchObject(said(full));
    const DATA_DIR = await folders.another();
    await cli(['keys', 'issue', '--name', 'shop'], { DATA_DIR });
    const withKey = await cli(['restore', file], { DATA_DIR });
    expect(withKey).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty: api_key has 1 rows, key_event has 1 rows.'),
    });
    expect((await cli(['keys', 'list'], { DATA_DIR })).stdout).toContain('shop');
  });

  test('refuses a file that was cut anywhere, changed anywhere, or is none, and makes no store', async () => {
    const file = await backupOfOne();
    const whole = readFileSync(file);
    const DATA_DIR = resolve(await folders.another(), 'store');
    const { database: options } = loadConfig({ DATA_DIR });
    const attempt = () =>
      restoreFrom(
        file,
        options,
        modelOf(modules).migrations.map(({ name }) => name),
        () => undefined,
      );
    for (const size of [
      whole.length - 1,
      whole.indexOf('-- complete') + 40,
      whole.indexOf('Rex'),
      whole.indexOf('\n') + 1,
    ]) {
      writeFileSync(file, whole);
      truncateSync(file, size);
      await expect(attempt()).rejects.toThrow(`${file} is not whole: it has been cut. Nothing was restored.`);
    }
    writeFileSync(file, whole.toString().replace('Rex', 'Max'));
    await expect(attempt()).rejects.toThrow(`${file} has been changed: its checksum is wrong. Nothing was restored.`);
    for (const [was, is] of [
      ['backup 1 {"', 'backup 1 {{'],
      ['-- complete {"', '-- complete {{'],
    ] as const) {
      writeFileSync(file, whole.toString().replace(was, is));
      await expect(attempt()).rejects.toThrow(`${file} has been changed: a comment of it cannot be read.`);
    }
    writeFileSync(file, whole.toString().replace('backup 1 ', 'backup 2 '));
    await expect(attempt()).rejects.toThrow(`${file} is in form 2, of another release; this one reads 1.`);
    for (const other of ['', 'select 1;\n']) {
      writeFileSync(file, other);
      await expect(attempt()).rejects.toThrow(`${file} is not a backup of an animal store.`);
    }
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject(
      said(`${file} is not a backup of an animal store.`),
    );
    expect(existsSync(DATA_DIR)).toBe(false);
    expect(statSync(file).size).toBe(10);
  });

  test('is all or nothing: rows that are not those of the backup are undone', async () => {
    const file = await backupOfOne();
    // As if the engine had written something else than it was given.
    const [head = ''] = readFileSync(file, 'utf8').replace('\tRex\t', '\tMax\t').split('-- complete ');
    const end = JSON.parse(readFileSync(file, 'utf8').split('-- complete ')[1] as string);
    writeFileSync(file, `${head}-- complete ${JSON.stringify({ ...end, sha256: hash('sha256', head) })}\n`);
    const DATA_DIR = await folders.another();
    const message = 'What was written is not what was read: pet. Nothing was kept.';
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject(said(message));
    expect(await petsIn(DATA_DIR)).toEqual([]);
  });

  test('migrates what an earlier release has backed up', async () => {
    const model = modelOf(modules);
    const { database: options } = loadConfig({ DATA_DIR: folders.store });
    const earlier = await Database.open(options, {
      ...model,
      entities: [PetEntity],
      migrations: model.migrations.slice(0, 1),
    });
    await earlier.migrate();
    await earlier.rows(
      { name: 'a', text: `insert into pet (name, category_id, status) values ('old', 1, 'sold')` },
      [],
    );
    await earlier.close();
    const file = folders.file('old.sql');
    expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });
    const DATA_DIR = await folders.another();
    const { stdout } = await cli(['restore', file, '--json'], { DATA_DIR });
    expect(JSON.parse(stdout).applied).toEqual(model.migrations.slice(1).map(({ name }) => name));
    expect(await petsIn(DATA_DIR)).toEqual([['1', 'old', '1', 'sold']]);
  });

  test('refuses what a newer release has backed up', async () => {
    const next = migrationOf('2999_01_01_000000_next', ['create table next (id int primary key)']);
    const { database } = await openNode({ env: { DATA_DIR: folders.store } }, [next]);
    await database.migrate();
    await database.close();
    const file = folders.file('new.sql');
    expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });
    const DATA_DIR = await folders.another();
    const message = `${file} is of a newer release: this one does not know 2999_01_01_000000_next. Use that release.`;
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject(said(message));
  });
});
