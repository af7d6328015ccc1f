import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { newFolder } from '../../support/folder.ts';
import { expect } from '../../support/jest.ts';

export const run = promisify(execFile);
/** npm takes packages from its cache, and programs the Node.js of the tests. */
export const env = {
  ...(process.env as Record<string, string>),
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  // The folder of the page has no cache of its own.
  NODE_COMPILE_CACHE: resolve('dist/compile-cache'),
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
};

/**
 * Follows the page of an example in an empty folder outside the project.
 *
 * @param name of the folder that the page makes beside the project
 * @param commands those that run here, in the first group
 */
export async function follow(page: string, name: string, commands: RegExp) {
  const parent = await newFolder();
  const folder = join(parent, name);
  const [, shown = ''] = commands.exec(await readFile(page, 'utf8')) ?? [];
  const here = shown.replaceAll(`../${name}`, folder);
  const { stdout } = await run('sh', ['-ec', here], { env });
  return { parent, folder, stdout };
}

/** Its types are right against the declarations of the packages. */
export async function expectRightTypes(folder: string) {
  const compiler = resolve('node_modules/.bin/tsc');
  const checked = run(compiler, [], { cwd: folder, env });
  expect(await checked.catch(({ stdout }) => stdout)).toMatchObject({
    stdout: '',
  });
}
