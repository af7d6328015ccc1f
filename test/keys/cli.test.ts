import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { cli, type Ended, eventually, killAll, type ServerProcess, startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

let database: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' });
});
afterAll(async () => {
  await killAll();
  await database.drop();
});

const keys = (...args: string[]): Promise<Ended> => cli(['keys', ...args], database.env);

/** Exactly one JSON document on standard output, and nothing else anywhere. */
async function json(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await keys(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^[^\n]+\n$/);
  return JSON.parse(stdout);
}

const secret = /ask_[0-9A-Za-z]{49}/;
const statusWith = async (key: string) => (await rest(server, '/v1/pets', { key })).status;

test('a key is issued, listed without its secret, used, revoked and then refused, while the server runs', async () => {
  const issued = await json('issue', '--name', 'web shop');
  expect(issued).toMatchObject({ id: expect.any(Number), name: 'web shop', key: expect.stringMatching(secret) });
  expect(await statusWith(issued.key)).toBe(200);

  const listed = await json('list');
  expect(listed).toContainEqual(expect.objectContaining({ id: issued.id, name: 'web shop', revokedAt: null }));
  expect(JSON.stringify(listed)).not.toMatch(secret);

  expect(await json('revoke', `${issued.id}`)).toMatchObject({ id: issued.id, revokedAt: expect.any(String) });
  await eventually(async () => (await statusWith(issued.key)) === 401);
  expect(await json('list')).toContainEqual(expect.objectContaining({ id: issued.id, revokedAt: expect.any(String) }));
});

test('a key issued while no server runs is valid when one starts', async () => {
  await server.stop();
  const { key } = await json('issue', '--name', 'early bird');
  server = await startServer(database.env);
  expect(await statusWith(key)).toBe(200);
});
