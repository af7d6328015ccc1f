import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';
import { env, expectRightTypes, follow, run } from './page.ts';

/** The page of examples/practice, followed outside the project. */

let practice: Awaited<ReturnType<typeof follow>>;

beforeAll(async () => {
  const page = 'examples/practice/README.md';
  practice = await follow(page, 'practice', /```sh\n(.*?)```/s);
});
afterAll(() => rm(practice.parent, { recursive: true }));

test('its own tests pass', () => {
  expect(practice.stdout).toMatch(/pass 6\n.*fail 0\n/s);
});

test('its types are right against the declarations of the packages', () =>
  expectRightTypes(practice.folder));

test('its migration is whole, and no migration of it has tables of the engine', async () => {
  const script = ['run', 'migration:create', '--', '--name=change'];
  const { stdout } = await run('npm', script, { cwd: practice.folder, env });
  expect(stdout).toContain('schema is up-to-date');
});
