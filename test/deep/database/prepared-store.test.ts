import { appendFileSync, chmodSync, cpSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { newFolder } from '../../support/folder.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { onPostgres, runFile } from '../../support/process.ts';

/** Modes of a folder and of all that is in it. */
function modesIn(path: string): number[] {
  const stats = statSync(path);
  const within = stats.isDirectory() ? readdirSync(path).flatMap((name) => modesIn(join(path, name))) : [];
  return [stats.mode & 0o777, ...within];
}

(onPostgres ? describe.skip : describe)('what new embedded stores are copied from (skipped on PostgreSQL)', () => {
  /** A build of one's own. */
  let folder: string;
  beforeEach(async () => {
    folder = await newFolder();
    for (const name of ['src', 'packages', 'migrations'])
      cpSync(join('dist', name), join(folder, 'dist', name), { recursive: true });
    cpSync('package.json', join(folder, 'package.json'));
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const made = () => readdirSync(join(folder, 'dist')).filter((name) => name.includes('prepared-store'));
  const prepare = async () =>
    expect(await runFile(join(folder, 'dist/src/prepare.js'), [], {}).ended).toMatchObject({ code: 0, stderr: '' });

  test('is made once, again for other migrations, and readable by every user', async () => {
    await Promise.all([prepare(), prepare()]);
    const [first = '', ...others] = made();
    expect(others).toEqual([]);
    const { ino } = statSync(join(folder, 'dist', first));
    await prepare();
    expect(made()).toEqual([first]);
    expect(statSync(join(folder, 'dist', first)).ino).toBe(ino);
    expect(new Set(modesIn(join(folder, 'dist', first)))).toEqual(new Set([0o755, 0o644]));

    const [migration = ''] = readdirSync(join(folder, 'dist/migrations'));
    appendFileSync(join(folder, 'dist/migrations', migration), '\n// another');
    await prepare();
    expect(made()).toEqual([expect.stringMatching(/^prepared-store-[0-9a-f]{16}$/)]);
    expect(made()).not.toEqual([first]);
  });

  test('is not needed, and may be read-only: the copy is its owner’s to write, and closed to others', async () => {
    const copied = async (DATA_DIR: string) => {
      const listed = await runFile(join(folder, 'dist/src/cli.js'), ['keys', 'list', '--json'], { DATA_DIR }).ended;
      expect(listed).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
    };
    // Then a new store is unpacked and migrated.
    await copied(join(folder, 'unpacked'));
    const [name = ''] = readdirSync('dist').filter((one) => one.startsWith('prepared-store-'));
    cpSync(join('dist', name), join(folder, 'dist', name), { recursive: true });
    for (const path of [name, `${name}/base`, `${name}/global`]) chmodSync(join(folder, 'dist', path), 0o555);
    chmodSync(join(folder, 'dist', name, 'PG_VERSION'), 0o444);
    await copied(join(folder, 'copied'));
    expect(statSync(join(folder, 'copied/postgres/PG_VERSION')).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'copied/postgres/global')).mode & 0o777).toBe(0o700);
  });
});
