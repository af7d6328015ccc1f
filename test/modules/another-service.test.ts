// runs: embedded

import { rm } from 'node:fs/promises';
import { contracts } from '#engine/process/contracts.js';
import { newFolder } from '../support/folder.ts';
import { type HttpRequest, send } from '../support/http.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { library } from '../support/library.ts';
import {
  type Env,
  eventually,
  freePort,
  killAll,
  type Running,
  runFile,
} from '../support/process.ts';

/** A service on the engine whose name, texts and module are not the store's. */

const file = 'dist/test/support/library.js';
/** Packages of the engine have a name that stays. */
const ofStore =
  /\bpets?\b|animal(?!-store\/)|npm run (?:store|schema)|src\/modules/i;
let folder: string;
let origin: string;
let operators: string;
let key: string;
let server: Running;
let env: Env;

beforeAll(async () => {
  folder = await newFolder();
  const port = `${await freePort()}`;
  const operationsPort = `${await freePort()}`;
  env = { DATA_DIR: folder, TOWN_LIBRARY_ENV_FILE: '', PORT: port };
  server = runFile(file, ['start'], {
    ...env,
    OPERATIONS_PORT: operationsPort,
    QUOTA_PER_MINUTE: '100',
    MCP: 'true',
  });
  const { output } = server;
  const keyIn = () => /^ {2}(ask_\w+)$/m.exec(output.stdout)?.[1];
  await eventually(async () => keyIn() !== undefined);
  key = `${keyIn()}`;
  origin = `http://127.0.0.1:${port}`;
  operators = `http://127.0.0.1:${operationsPort}`;
});
afterAll(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

const ask = (request: HttpRequest) => {
  const { headers } = request;
  const authorization = `Bearer ${key}`;
  return send(origin, { ...request, headers: { authorization, ...headers } });
};

test('its contracts say nothing of the store', async () => {
  const { 'openapi.json': openApi = '', 'schema.graphql': sdl = '' } =
    await contracts(library);
  expect(openApi).not.toMatch(ofStore);
  expect(sdl).not.toMatch(ofStore);
  const { info, paths } = JSON.parse(openApi);
  expect(info).toEqual({
    title: 'Town Library',
    version: '0.1.0',
    description: 'The books of a town. Every operation needs an API key.',
  });
  expect(Object.keys(paths)).toEqual(['/books', '/books/{bookId}']);
});

test('nor does its help', async () => {
  const commands = ['', 'start', 'keys issue', 'export', 'import', 'schema'];
  for (const command of commands) {
    const args = [...command.split(' ').filter(Boolean), '--help'];
    const { stdout } = await runFile(file, args, env).ended;
    expect(stdout).toContain('Usage: town-library');
    expect(stdout).not.toMatch(ofStore);
  }
});

test('nor do its pages, which link to no guides', async () => {
  const headers = { accept: 'text/html' };
  for (const path of ['/', '/docs', '/graphiql', '/graphql', '/nowhere']) {
    const { text } = await send(origin, { path, headers });
    expect(text).toContain('Town Library');
    expect(text).not.toMatch(ofStore);
    expect(text).not.toContain('/guide');
  }
  const { text } = await send(origin, { path: '/', headers });
  expect(text).toContain('<code>town-library keys issue --name me</code>');
  expect((await ask({ path: '/guide' })).status).toBe(404);
});

test('nor do the headers of its quota', async () => {
  const { headers } = await ask({ path: '/v1/books' });
  expect(headers['ratelimit-policy']).toBe(
    '"key";q=100;w=60;town-library-unit="operations+items"',
  );
});

test('nor do its tools for assistants', async () => {
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-06-18',
  };
  const path = '/mcp';
  const { text } = await ask({ method: 'POST', path, headers, body });
  expect(text).toContain('list_books');
  expect(text).not.toMatch(ofStore);
});

test('nor do its metrics', async () => {
  const { text } = await send(operators, { path: '/metrics' });
  expect(text).toContain('town_library_operations_total');
  expect(text).not.toMatch(ofStore);
});

test('nor do its log and its first calls', () => {
  const { stdout, stderr } = server.output;
  expect(stdout).toContain('Town Library is open at ');
  expect(stdout).toContain('"pages":"/ /docs /graphiql /graphql"');
  expect((stdout + stderr).replaceAll(folder, '')).not.toMatch(ofStore);
});

test.each(['own.service', 'Own', '2nd', ''])(
  'a service does not start with the name "%s", of which no metric could be named',
  async (name) => {
    await expect(contracts({ ...library, name })).rejects.toThrow(
      `The name of a service is like own-service, not "${name}".`,
    );
  },
);
