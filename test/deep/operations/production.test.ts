import { spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createEmptyDatabase, newFolder, type TestDatabase } from '../../support/database.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { type Ended, type Env, eventually, freePort } from '../../support/process.ts';

/** A folder as the image has it: the manifest, what was built, the packages, and no compiler of ours anywhere. */
let folder: string;
let database: TestDatabase;
let env: Env;
const ends: Array<() => Promise<unknown>> = [];
beforeEach(async () => {
  folder = await newFolder();
  cpSync('package.json', join(folder, 'package.json'));
  for (const name of ['bin', 'assets']) cpSync(name, join(folder, name), { recursive: true });
  const isBuilt = (path: string) => !/^dist\/(?:test|compile-cache)(?:\/|$)/.test(path);
  cpSync('dist', join(folder, 'dist'), { recursive: true, filter: isBuilt });
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync('node_modules').filter((one) => !one.startsWith('.'))) {
    symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
  }
  database = await createEmptyDatabase();
  // This Node first: `npm` may have been found beside an older one. And nothing of what `npm test` has put there.
  const path = (process.env.PATH ?? '').split(':').filter((one) => !one.endsWith('node_modules/.bin'));
  env = { ...database.env, PATH: [dirname(process.execPath), ...path].join(':'), HOME: folder, NODE_ENV: 'production' };
  env.NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? '';
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program in the folder, in a process group of its own: npm and what it starts end together. */
function start(program: string, args: string[], more: Env = {}) {
  const child = spawn(program, args, { cwd: folder, env: { ...env, ...more }, detached: true });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.stderr += text;
  });
  const ended = new Promise<Ended>((done) => {
    child.once('close', (code, signal) => done({ code, signal, ...output }));
  });
  ends.push(() => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
    return ended;
  });
  return { child, output, ended };
}

const npm = (...args: string[]): Promise<Ended> => start('npm', ['--silent', ...args]).ended;

test('`npm run keys` and `npm run migrate` work where there are no development dependencies', async () => {
  expect(await npm('run', 'migrate')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^applied: /),
    stderr: '',
  });
  const issued = await npm('run', 'keys', '--', 'issue', '--name', 'shop', '--json');
  expect(issued).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{.*\}\n$/), stderr: '' });
  const { id } = JSON.parse(issued.stdout);
  const listed = await npm('run', 'keys', '--', 'list', '--json');
  expect(JSON.parse(listed.stdout)).toEqual([expect.objectContaining({ id, name: 'shop' })]);
});

test('`npm start` serves there, and ends when it is told to', async () => {
  const port = await freePort();
  const { child, output, ended } = start('npm', ['--silent', 'start'], { PORT: `${port}` });
  await eventually(async () => {
    if (child.exitCode !== null) return true;
    return (await send(`http://127.0.0.1:${port}`, { path: '/readyz' })).status === 200;
  });
  expect(output.stderr).toBe('');
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});

test("a compiler that is none of the service's is not asked to build", async () => {
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'tsc'), '#!/bin/sh\necho "another version of TypeScript" >&2\nexit 1\n', {
    mode: 0o755,
  });
  env.PATH = `${elsewhere}:${env.PATH}`;
  expect(await npm('run', 'keys', '--', 'list', '--json')).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
});

test.each(['start', 'run migrate', 'run keys -- list'])(
  'where nothing is built, `npm %s` says so in one line',
  async (command) => {
    rmSync(join(folder, 'dist'), { recursive: true });
    expect(await npm(...command.split(' '))).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'animal-store: nothing is built here: run `npm ci` with the development dependencies\n',
    });
  },
);

test('the package brings a command of its own', async () => {
  const { bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(Object.keys(bin)).toEqual(['animal-store']);
  // As npm installs it: a link, to a file that may be run.
  const command = join(folder, 'animal-store');
  chmodSync(join(folder, bin['animal-store']), 0o755);
  symlinkSync(bin['animal-store'], command);
  expect(await start(command, ['keys', 'list', '--json']).ended).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
});
