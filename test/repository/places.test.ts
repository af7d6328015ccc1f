import { globSync, readFileSync } from 'node:fs';
import { filesOf, runsOf } from '../runs.ts';
import { expect, test } from '../support/jest.ts';

/**
 * Where a test goes: the rule is at the head of the chapter on tests of
 * docs/develop.md.
 */

const exclude = ['**/node_modules', 'dist', 'release', '.build', '.data'];
const files = globSync('**/*.test.{ts,tsx,js}', { exclude });
const quick = files.filter((file) => !file.startsWith('test/deep/'));

/** Quick tests whose subject is a process; others say it in a line. */
const ofProcesses = ['test/cli/', 'test/operations/', 'packages/cluster/'];
const startsProcesses = /^\/\/ starts processes$/m;

/** Modules, and functions of test/support/process.ts, that start processes. */
const starters =
  /from '(?:node:child_process|[./]+support\/(?:metrics|redis|workers|servers\/\w+)\.ts)'|[{,]\s+(?:run|runFile|runCommand|cli|startAndFail|startServer)\b[^}]*\} from '[./]+support\/process\.ts'/;

test('every test is in a folder of test/runs.ts, and names only runs that exist', () => {
  expect(files.length).toBeGreaterThan(100);
  for (const file of files) expect(runsOf(file)).toContain('embedded');
});

test('no quick test starts a process, but those whose subject is a process', () => {
  const starting = quick.filter((file) =>
    starters.test(readFileSync(file, 'utf8')),
  );
  const allowed = quick.filter(
    (file) =>
      ofProcesses.some((start) => file.startsWith(start)) ||
      startsProcesses.test(readFileSync(file, 'utf8')),
  );
  expect(starting.filter((file) => !allowed.includes(file))).toEqual([]);
  for (const start of ofProcesses)
    expect(starting.some((file) => file.startsWith(start))).toBe(true);
});

test.each([
  [
    'test/toys/toy.test.ts',
    '',
    'tests are in a folder that test/runs.ts lists',
  ],
  ['src/toys/toy.test.ts', '', 'tests are in a folder that test/runs.ts lists'],
  [
    'test/rest/toy.test.ts',
    '// runs: embedded, oracle\n',
    'unknown in "// runs:": oracle; the runs are embedded, ',
  ],
  [
    'test/rest/toy.test.ts',
    '// runs: postgres\n',
    '"// runs:" begins with embedded, which runs every test',
  ],
])('%s with %j is refused', (file, text, reason) => {
  expect(() => runsOf(file, text)).toThrow(`${file}: ${reason}`);
});

test('a file runs where its line says, or else where its folder says; a run that does not exist is refused', () => {
  expect(runsOf('test/deep/parity/toy.test.ts', '')).toEqual([
    'embedded',
    'postgres',
    'pgbouncer',
    'citus-shards',
  ]);
  expect(
    runsOf('test/parity/toy.test.ts', '// runs: embedded, plugins\n'),
  ).toEqual(['embedded', 'plugins']);
  expect(runsOf('packages/toys/test/toy.test.ts', '')).toEqual(['embedded']);
  expect(
    filesOf('plugins', [
      'test/parity/order.test.ts',
      'test/parity/pages.test.ts',
    ]),
  ).toEqual(['test/parity/pages.test.ts']);
  expect(() => filesOf('oracle', [])).toThrow(
    'TEST_RUN=oracle is none of embedded, postgres, ',
  );
});
