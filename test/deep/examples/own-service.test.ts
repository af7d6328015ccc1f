import { existsSync, globSync } from 'node:fs';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { send } from '../../support/http.ts';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';
import {
  eventually,
  freePort,
  killAll,
  runCommand,
} from '../../support/process.ts';
import { env, expectRightTypes, follow, run } from './page.ts';

/**
 * The page of examples/own-service, followed in an empty folder outside the
 * project, with the packages that a release publishes.
 */

let folder: string;
let library: string;
let tested: string;

beforeAll(async () => {
  const page = 'examples/own-service/README.md';
  const followed = await follow(page, 'library', /```sh\n(.*?)npm start\n```/s);
  folder = followed.parent;
  library = followed.folder;
  tested = followed.stdout;
});
afterAll(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

test('its own test passes', () => {
  expect(tested).toMatch(/pass 1\n.*fail 0\n/s);
});

test('`new .` says what to do in this folder', () => {
  const next = 'library is written. Next: npm install && npm test && npm start';
  expect(tested).toContain(next);
});

test('its types are right against the declarations of the packages', () =>
  expectRightTypes(library));

test('packages of features that it does not list are not installed', () => {
  const installed = [
    '@opentelemetry',
    '@fastify/swagger-ui',
    '@prometheus-io',
    'csv-parse',
    'graphql-jit',
    'ioredis',
    'jose',
  ].filter((name) => existsSync(join(library, 'node_modules', name)));
  expect(installed).toEqual([]);
});

test('there is one copy of each library that entities, types and schemas share', async () => {
  const { packages } = JSON.parse(
    await readFile(join(library, 'package-lock.json'), 'utf8'),
  );
  const shared =
    /node_modules\/(graphql|type-graphql|fastify|typebox|@mikro-orm\/core|@electric-sql\/pglite)$/;
  const copies = Object.keys(packages).filter((path) => shared.test(path));
  expect(copies.sort()).toEqual([
    'node_modules/@electric-sql/pglite',
    'node_modules/@mikro-orm/core',
    'node_modules/fastify',
    'node_modules/graphql',
    'node_modules/type-graphql',
    'node_modules/typebox',
  ]);
});

test('it needs no more than 150 MB, and overrides no version', async () => {
  const { stdout } = await run('du', ['-sk', 'node_modules'], { cwd: library });
  expect(Number.parseInt(stdout, 10)).toBeLessThan(150_000);
  const manifest = await readFile(join(library, 'package.json'), 'utf8');
  expect(JSON.parse(manifest).overrides).toBeUndefined();
});

test('links of the packed pages lead to files of the package', async () => {
  const root = join(library, 'node_modules/@animal-store/engine');
  const pages = globSync('{*.md,docs/*.md}', { cwd: root });
  expect(pages.length).toBeGreaterThan(20);
  const broken: string[] = [];
  for (const page of pages) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\(([^)#\s]+)/g)) {
      const isElsewhere = /^\w+:/.test(target);
      const path = join(root, dirname(page), target);
      if (!isElsewhere && !existsSync(path)) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test('the packed modules import what a service imports', async () => {
  const root = join(library, 'node_modules/@animal-store/engine/modules');
  const files = globSync('*/*.ts', { cwd: root });
  const texts = await Promise.all(
    files.map((file) => readFile(join(root, file), 'utf8')),
  );
  expect(texts.join()).not.toContain('#engine');
  const practice = texts[files.indexOf('practice/owner.ts')];
  expect(practice).toContain("from '@animal-store/engine/resources'");
});

const engine = (...args: string[]) =>
  run('npx', ['@animal-store/engine', ...args], { cwd: library, env });
/** The names and texts of what `new` has written. */
async function writtenIn(service: string) {
  const names = globSync('{*,.*,src/*,test/*}', { cwd: service });
  const files = names.filter((name) => /\.\w+$|file$/.test(name));
  const texts = files.map((name) => readFile(join(service, name), 'utf8'));
  return { files: files.sort(), text: (await Promise.all(texts)).join() };
}

test('`new` takes the names of the service and of its resource', async () => {
  const { stdout } = await engine('new', '../corner-shop', 'Category');
  expect(stdout).toBe(
    'corner-shop is written. Next: cd ../corner-shop && npm install && npm test && npm start\n',
  );
  const shop = join(folder, 'corner-shop');
  const { files, text } = await writtenIn(shop);
  expect(files).toEqual([
    ...['.dockerignore', '.env.example', '.gitignore', 'AGENTS.md'],
    ...['Dockerfile', 'package.json', 'src/categories.ts', 'src/cli.ts'],
    ...['src/main.ts', 'src/service.ts', 'test/categories.test.ts'],
    'tsconfig.json',
  ]);
  expect(text).not.toMatch(/book|own.service|\banimals?\b(?!-store)/i);
  expect(text).toContain("title: 'Corner shop'");
  await symlink(join(library, 'node_modules'), join(shop, 'node_modules'));
  const { stdout: ofTest } = await run('npm', ['test'], { cwd: shop, env });
  expect(ofTest).toMatch(/pass 1\n.*fail 0\n/s);
});

test.each([
  [['new'], 'usage: new FOLDER [RESOURCE], or bundle'],
  [['make', 'x'], 'usage: new FOLDER [RESOURCE], or bundle'],
  [['new', 'Shop'], 'the folder needs a name like own-service, not "Shop"'],
  [['new', 'shop', 'dog'], 'a resource has a name like Book, not "dog"'],
  [['new', '.'], '. has a service already'],
])('%j is refused', async (args, reason) => {
  await expect(engine(...args)).rejects.toMatchObject({
    stderr: expect.stringContaining(reason),
  });
});

test('a bundle needs no package of a feature that is switched off', async () => {
  const path = join(library, 'src/service.ts');
  const text = await readFile(path, 'utf8');
  const imported =
    "import { quota } from '@animal-store/engine/features/quota';\n";
  const listed = text.replace('features: [', 'features: [quota, ');
  await writeFile(path, imported + listed);
  await engine('bundle');
  await writeFile(path, text);
  const started = run('node', ['dist/bundle/main.js'], {
    cwd: library,
    env: { ...env, QUOTA_PER_MINUTE: '1', REDIS_URL: 'redis://127.0.0.1:1' },
  });
  await expect(started).rejects.toMatchObject({
    stderr: expect.stringMatching(/'ioredis'.*; .*npm install ioredis@\d/),
  });
});

test('it prints its first key, and REST, GraphQL and OpenAPI answer; its bundle has the same data', async () => {
  const port = `${await freePort()}`;
  const startIt = (program: string) =>
    runCommand(['sh', '-c', `cd "$0" && exec node ${program}`, library], {
      ...env,
      PORT: port,
    });
  const started = startIt('src/cli.ts start');
  const keyOf = () => /^ {2}(ask_\w+)$/m.exec(started.output.stdout)?.[1];
  await eventually(async () => keyOf() !== undefined);
  const origin = `http://127.0.0.1:${port}`;
  const headers = {
    authorization: `Bearer ${keyOf()}`,
    'content-type': 'application/json',
  };
  const post = async (path: string, body: string) =>
    (await send(origin, { method: 'POST', path, headers, body })).text;

  const input = '{"title":"Emma","number":9007199254740993}';
  expect(await post('/v1/books', input)).toBe(
    '{"id":1,"title":"Emma","number":9007199254740993,"version":1}',
  );
  const query = '{"query":"{ books { id number } }"}';
  expect(await post('/graphql', query)).toBe(
    '{"data":{"books":[{"id":"1","number":"9007199254740993"}]}}',
  );
  const { text } = await send(origin, { path: '/v1/openapi.json' });
  expect(Object.keys(JSON.parse(text).paths)).toContain('/books/{bookId}');

  started.child.kill();
  expect((await started.ended).code).toBe(0);

  await engine('bundle');
  const bundled = startIt('dist/bundle/main.js');
  const isReady = async () =>
    (await send(origin, { path: '/readyz' })).status === 200;
  await eventually(isReady);
  const listed = await send(origin, { path: '/v1/books', headers });
  expect(listed.text).toBe(
    '[{"id":1,"title":"Emma","number":9007199254740993,"version":1}]',
  );
  bundled.child.kill();
  expect((await bundled.ended).code).toBe(0);
});
