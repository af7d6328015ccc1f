import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { newFolder } from '../../support/folder.ts';
import { send } from '../../support/http.ts';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';
import {
  eventually,
  freePort,
  killAll,
  runCommand,
} from '../../support/process.ts';

/**
 * The page of examples/own-service, followed in an empty folder outside the
 * project, with the packages that a release publishes.
 */

const run = promisify(execFile);
const env = {
  ...(process.env as Record<string, string>),
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
};
let folder: string;
let library: string;
let tested: string;

beforeAll(async () => {
  folder = await newFolder();
  library = join(folder, 'library');
  const page = await readFile('examples/own-service/README.md', 'utf8');
  const [, commands = ''] = /```sh\n(.*?)npm start\n```/s.exec(page) ?? [];
  const here = commands.replaceAll('../library', library);
  tested = (await run('sh', ['-ec', here], { env })).stdout;
});
afterAll(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

test('its own test passes', () => {
  expect(tested).toMatch(/pass 1\n.*fail 0\n/s);
});

test('its types are right against the declarations of the packages', async () => {
  const flags =
    '--noEmit --strict --skipLibCheck --target es2024 --module nodenext --allowImportingTsExtensions --types node --typeRoots';
  const compiler = resolve('node_modules/.bin/tsc');
  const args = [...flags.split(' '), resolve('node_modules/@types')];
  const files = ['src/main.ts', 'src/cli.ts', 'test/books.test.ts'];
  const checked = run(compiler, [...args, ...files], { cwd: library, env });
  expect(await checked.catch(({ stdout }) => stdout)).toMatchObject({
    stdout: '',
  });
});

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

test('it prints its first key, and REST, GraphQL and OpenAPI answer', async () => {
  const port = `${await freePort()}`;
  const started = runCommand(
    ['sh', '-c', 'cd "$0" && exec node src/cli.ts start', library],
    { ...env, PORT: port },
  );
  const keyOf = () => /^ {2}(ask_\w+)$/m.exec(started.output.stdout)?.[1];
  await eventually(async () => keyOf() !== undefined);
  const origin = `http://127.0.0.1:${port}`;
  const headers = {
    authorization: `Bearer ${keyOf()}`,
    'content-type': 'application/json',
  };
  const post = async (path: string, body: string) =>
    (await send(origin, { method: 'POST', path, headers, body })).text;

  const input = '{"title":"Emma","isbn":9007199254740993}';
  expect(await post('/v1/books', input)).toBe(
    '{"id":1,"title":"Emma","isbn":9007199254740993,"version":1}',
  );
  const query = '{"query":"{ books { id isbn } }"}';
  expect(await post('/graphql', query)).toBe(
    '{"data":{"books":[{"id":"1","isbn":"9007199254740993"}]}}',
  );
  const { text } = await send(origin, { path: '/v1/openapi.json' });
  expect(Object.keys(JSON.parse(text).paths)).toContain('/books/{bookId}');

  started.child.kill();
  expect((await started.ended).code).toBe(0);
});
