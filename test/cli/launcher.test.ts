import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { newFolder } from '../support/folder.ts';
import { afterAll, afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { type Env, eventually, killAll, runCommand } from '../support/process.ts';

/** The launcher, the compiler and the packages as they are, and a program of few lines. */
let folder: string;
beforeAll(async () => {
  folder = await newFolder();
  for (const path of ['bin', 'package.json', 'tsconfig.json', 'packages/embedded-postgres/src/lock.ts']) {
    cpSync(path, join(folder, path), { recursive: true });
  }
  mkdirSync(join(folder, 'migrations'));
  write('migrations/first.ts', 'export const name = "first";\n');
  write('src/prepare.ts', 'import "../migrations/first.ts";\nconsole.error("prepared");\n');
  write('src/word.ts', 'export const word: string = "one";\n');
  write('src/cli.ts', 'import { word } from "./word.ts";\nconsole.log(word, ...process.argv.slice(2));\n');
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});
afterEach(killAll);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
const text = (path: string) => readFileSync(join(folder, path), 'utf8');

/** @param beforehand options of Node.js itself */
function start(args: string[], { env = {}, beforehand = [] }: { env?: Env; beforehand?: string[] } = {}) {
  const command = [process.execPath, ...beforehand, join(folder, 'bin/animal-store.js'), ...args];
  return runCommand(command, { PATH: '/usr/bin:/bin', HOME: folder, ...env });
}

const launch = (...args: string[]) => start(args).ended;
const quietly = (stdout: string) => ({ code: 0, signal: null, stdout, stderr: '' });

test('two that are started at once where nothing is built: one builds, and both run', async () => {
  const both = await Promise.all([launch('a'), launch('b')]);
  expect(both.map(({ code, stdout }) => ({ code, stdout }))).toEqual([
    { code: 0, stdout: 'one a\n' },
    { code: 0, stdout: 'one b\n' },
  ]);
  const said = both.map(({ stderr }) => stderr).join('');
  expect(said).toMatch(/^animal-store: the build is missing, building\nprepared\nanimal-store: built in [\d.]+ s\n$/);
});

test('what is built runs without a word, and nothing is written but compiled code', async () => {
  const before = statSync(join(folder, 'dist/.built-from')).mtimeMs;
  expect(await launch('keys', 'list')).toEqual(quietly('one keys list\n'));
  expect(statSync(join(folder, 'dist/.built-from')).mtimeMs).toBe(before);
});

test('a change of a source is built before it runs, an older file too, and the next start is quiet', async () => {
  write('src/word.ts', 'export const word: string = "two";\n');
  utimesSync(join(folder, 'src/word.ts'), 1_000_000, 1_000_000);
  const changed = await launch();
  expect(changed).toMatchObject({ code: 0, stdout: 'two\n', stderr: expect.stringContaining('the build is stale') });
  expect(await launch()).toEqual(quietly('two\n'));
});

test('what browsers get is a part of the build: a change of it is built, and nothing is compiled to it', async () => {
  mkdirSync(join(folder, 'explorer'));
  for (const page of ['export const page = 1;\n', 'export const page = 2 + 2;\n']) {
    write('explorer/page.ts', page);
    expect(await launch()).toMatchObject({ code: 0, stdout: 'two\n', stderr: expect.stringContaining('prepared') });
    expect(await launch()).toEqual(quietly('two\n'));
  }
  expect(existsSync(join(folder, 'dist/explorer'))).toBe(false);
});

test('what was built of a source that is gone is gone, and nothing else', async () => {
  write('src/passing.ts', 'export const passing = 1;\n');
  await launch();
  write('dist/src/asset.css', 'a {}');
  expect(existsSync(join(folder, 'dist/src/passing.js'))).toBe(true);
  rmSync(join(folder, 'src/passing.ts'));
  expect(await launch()).toMatchObject({ code: 0, stdout: 'two\n' });
  expect(existsSync(join(folder, 'dist/src/passing.js'))).toBe(false);
  expect(existsSync(join(folder, 'dist/src/passing.js.map'))).toBe(false);
  expect(text('dist/src/asset.css')).toBe('a {}');
});

test('a source that the compiler refuses is not run, nor what was built before; what was built stays as it was', async () => {
  const before = text('dist/src/word.js');
  write('src/word.ts', 'export const word: number = "three";\n');
  for (const ended of [await launch(), await launch()]) {
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(
      "src/word.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.",
    );
  }
  expect(text('dist/src/word.js')).toBe(before);
  write('src/word.ts', 'export const word: string = "three";\n');
  expect(await launch()).toMatchObject({ code: 0, stdout: 'three\n' });
});

test('what a killed build leaves is no build: the next one makes it anew, and clears up', async () => {
  rmSync(join(folder, 'dist/.built-from'));
  rmSync(join(folder, '.build/src/word.js'));
  write('dist/src/word.js', 'half of a fi');
  const leftover = join(folder, 'dist/.prepared-store-Xyz123');
  mkdirSync(leftover);
  utimesSync(leftover, 1_000_000, 1_000_000);
  expect(await launch()).toMatchObject({ code: 0, stdout: 'three\n' });
  expect(existsSync(leftover)).toBe(false);
});

/** Makes Node.js believe that it is another version; what it starts does not. */
const old = ['--import', 'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "20.20.2" })'];

test('on an older Node.js it goes on in the one that the packages brought: arguments, environment, signals and the end', async () => {
  write(
    'src/cli.ts',
    'console.log(process.argv.slice(2).join(), process.versions.node, process.env.WORD);\n' +
      'process.on("SIGTERM", () => process.exit(7));\nsetInterval(() => {}, 1000);\n',
  );
  const running = start(['a', 'b c'], { env: { WORD: 'hello' }, beforehand: old });
  await eventually(async () => running.output.stdout.includes('\n'));
  expect(running.output.stdout).toBe(`a,b c ${process.versions.node} hello\n`);
  running.child.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 7, signal: null });

  const killed = start(['a'], { beforehand: old });
  await eventually(async () => killed.output.stdout.includes('\n'));
  killed.child.kill('SIGHUP');
  expect(await killed.ended).toMatchObject({ code: null, signal: 'SIGHUP' });
});

test('without one it says what it needs, in a line', async () => {
  rmSync(join(folder, 'node_modules'));
  expect(await start(['start'], { beforehand: old }).ended).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^animal-store: It needs Node\.js 24 or later, and this is v\S+\. [^\n]*\n$/),
  });
});

test('it is what npm links: an executable file, for any Node.js that there is', () => {
  const { bin } = JSON.parse(text('package.json'));
  expect(bin).toEqual({ 'animal-store': 'bin/animal-store.js' });
  expect(statSync('bin/animal-store.js').mode & 0o111).toBe(0o111);
  expect(text('bin/animal-store.js')).toMatch(/^#!\/usr\/bin\/env node\n/);
});
