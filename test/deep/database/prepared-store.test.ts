// runs: embedded

import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdtempDisposableSync,
  readdirSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { scratch } from '../../support/folder.ts';
import { expect, test } from '../../support/jest.ts';
import { onPostgres, runFile } from '../../support/process.ts';

(onPostgres ? test.skip : test)(
  'the prepared folder that new embedded stores copy is made once per set of migrations; it may be read-only or missing (skipped on PostgreSQL)',
  async () => {
    // A copy of the build, which the test may change.
    using temporary = mkdtempDisposableSync(
      join(scratch, 'animal-store-test-'),
    );
    const { path: folder } = temporary;
    const dist = join(folder, 'dist');
    for (const name of ['dist/src', 'dist/migrations', 'package.json']) {
      cpSync(name, join(folder, name), { recursive: true });
    }
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const modeOf = (...path: string[]) =>
      statSync(join(folder, ...path)).mode & 0o777;
    /** Runs several preparations at once. */
    const prepare = async (count = 1) => {
      const builds = Array.from(
        { length: count },
        () => runFile(join(dist, 'src/process/prepare.js'), [], {}).ended,
      );
      for (const ended of await Promise.all(builds))
        expect(ended).toMatchObject({ code: 0, stderr: '' });
      const made = readdirSync(dist).filter((name) =>
        name.includes('prepared-store'),
      );
      expect(made).toEqual([
        expect.stringMatching(/^prepared-store-[0-9a-f]{16}$/),
      ]);
      return join('dist', made[0] as string);
    };
    const isUsable = async (DATA_DIR: string) => {
      const listed = await runFile(
        join(dist, 'src/cli.js'),
        ['keys', 'list', '--json'],
        { DATA_DIR },
      ).ended;
      expect(listed).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
    };
    // Without a prepared folder a new store is unpacked and migrated.
    await isUsable(join(folder, 'unpacked'));

    const first = await prepare(2);
    const { ino } = statSync(join(folder, first));
    expect(await prepare()).toBe(first);
    expect(statSync(join(folder, first)).ino).toBe(ino);
    // Every user can read it.
    const all = readdirSync(join(folder, first), { recursive: true });
    expect(new Set(all.map((path) => modeOf(first, `${path}`)))).toEqual(
      new Set([0o755, 0o644]),
    );

    const [migration = ''] = readdirSync(join(dist, 'migrations'));
    appendFileSync(join(dist, 'migrations', migration), '\n// another');
    const second = await prepare();
    expect(second).not.toBe(first);

    // The owner may write the copy; other users may not open it.
    for (const path of ['', 'base', 'global'])
      chmodSync(join(folder, second, path), 0o555);
    chmodSync(join(folder, second, 'PG_VERSION'), 0o444);
    await isUsable(join(folder, 'copied'));
    expect([
      modeOf('copied/postgres/PG_VERSION'),
      modeOf('copied/postgres/global'),
    ]).toEqual([0o600, 0o700]);
  },
);
