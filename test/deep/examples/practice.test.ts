import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { newFolder } from '../../support/folder.ts';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';

/** The page of examples/practice, followed outside the project. */

const run = promisify(execFile);
const env = {
  ...(process.env as Record<string, string>),
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
};
let folder: string;
let practice: string;
let tested: string;

beforeAll(async () => {
  folder = await newFolder();
  practice = join(folder, 'practice');
  const page = await readFile('examples/practice/README.md', 'utf8');
  const [, commands = ''] = /```sh\n(.*?)```/s.exec(page) ?? [];
  const here = commands.replaceAll('../practice', practice);
  tested = (await run('sh', ['-ec', here], { env })).stdout;
});
afterAll(() => rm(folder, { recursive: true }));

test('its own tests pass', () => {
  expect(tested).toMatch(/pass 6\n.*fail 0\n/s);
});

test('its types are right against the declarations of the packages', async () => {
  const flags =
    '--noEmit --strict --skipLibCheck --target es2024 --module nodenext --allowImportingTsExtensions --types node --typeRoots';
  const compiler = resolve('node_modules/.bin/tsc');
  const args = [...flags.split(' '), resolve('node_modules/@types')];
  const files = ['src/main.ts', 'src/mikro-orm.config.ts'];
  const all = [...args, ...files, 'test/practice.test.ts'];
  const checked = run(compiler, all, { cwd: practice, env });
  expect(await checked.catch(({ stdout }) => stdout)).toMatchObject({
    stdout: '',
  });
});

test('its migration is whole, and no migration of it has tables of the engine', async () => {
  const script = ['run', 'migration:create', '--', '--name=change'];
  const { stdout } = await run('npm', script, { cwd: practice, env });
  expect(stdout).toContain('schema is up-to-date');
});
