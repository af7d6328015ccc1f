import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { cli, killAll, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** What a key is called is text, whatever it looks like: to the shell, to PostgreSQL, and on its way to the embedded one. */
let database: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: 'names-0123456789abcdef0123456789',
    LOG_LEVEL: 'warn',
  });
});
afterAll(async () => {
  await server.stop();
  await killAll();
  await database.drop();
});

const called: unknown[] = [];

describe('a key may be called', () => {
  test.each([
    'copy pet from stdin',
    "it's copy pet from stdin",
    "'; copy pet from stdin; --",
    String.raw`back\slash \'; copy pet from stdin; --`,
    String.raw`\\' copy pet from stdin`,
    '"copy pet" from stdin',
    '$$ copy pet from stdin $$',
    "$a$ ' copy pet from stdin",
    '-- copy pet from stdin',
    '/* /* copy pet from stdin */',
    "*/ ' copy pet from stdin",
    'copy pet\nfrom stdin',
    "e'copy pet from stdin'",
    'käse 🐕 ?; select 1',
  ])('%j', async (name) => {
    const { code, stdout, stderr } = await cli(['keys', 'issue', '--name', name, '--json'], database.env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const issued = JSON.parse(stdout);
    expect(issued).toMatchObject({ name, key: expect.stringMatching(/^ask_\w{49}$/) });
    called.push(expect.objectContaining({ id: issued.id, name }));
    expect((await rest(server, '/v1/pets', { key: issued.key })).json).toEqual([]);
  });

  test('and is listed so', async () => {
    const listed = JSON.parse((await cli(['keys', 'list', '--json'], database.env)).stdout);
    expect(called).toHaveLength(14);
    expect(listed).toEqual(expect.arrayContaining(called));
  });
});
