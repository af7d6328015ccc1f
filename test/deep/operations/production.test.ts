import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createEmptyDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { newFolder } from '../../support/folder.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { type Env, eventually, freePort, type Running, runCommand } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** A folder as the image has it: the manifest, what was built, the packages, and no compiler of ours anywhere. */
let folder: string;
const database = databaseForEach(createEmptyDatabase);
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
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs npm in the folder. */
function npm(args: string[], env: Env = {}): Running {
  // This Node first: `npm` may have been found beside an older one. And nothing of what `npm test` has put there.
  const path = (process.env.PATH ?? '').split(':').filter((one) => !one.endsWith('node_modules/.bin'));
  const PATH = [dirname(process.execPath), ...path].join(':');
  const own = { PATH, HOME: folder, NODE_ENV: 'production', NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '' };
  return runCommand(['npm', '--silent', '--prefix', folder, ...args], { ...database.env, ...own, ...env });
}

test('the scripts work where there are no development dependencies, and `npm start` ends when it is told to', async () => {
  expect(await npm(['run', 'migrate']).ended).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^applied: /),
    stderr: '',
  });
  const port = await freePort();
  const { child, output, ended } = npm(['start'], { PORT: `${port}` });
  await eventually(async () => {
    if (child.exitCode !== null) return true;
    return (await send(`http://127.0.0.1:${port}`, { path: '/readyz' })).status === 200;
  });
  expect(output.stderr).toBe('');
  const issued = await npm(['run', 'keys', '--', 'issue', '--name', 'shop', '--json']).ended;
  expect(issued).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{.*\}\n$/), stderr: '' });
  const { key } = JSON.parse(issued.stdout);
  expect((await rest({ origin: `http://127.0.0.1:${port}`, key }, '/v1/pets')).json).toEqual([]);
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});
