import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createOwnDatabase, type TestDatabase } from '../../support/database.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  eventually,
  killAll,
  onPostgres,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { linesOf } from '../../support/workers.ts';

let database: TestDatabase;
let env: Env & { DATA_DIR: string };
beforeEach(async () => {
  database = await createOwnDatabase();
  env = { ...(database.env as { DATA_DIR: string }), BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' };
});
afterEach(async () => {
  await killAll();
  await database.drop();
});

async function create(server: ServerProcess, name: string): Promise<void> {
  const { status } = await rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
  expect(status).toBe(201);
}

/** It may still be taking over. */
function ready({ origin }: ServerProcess): Promise<void> {
  return eventually(async () => (await send(origin, { path: '/readyz' })).status === 200);
}

async function names(server: ServerProcess): Promise<string[]> {
  const { status, json } = await rest(server, '/v1/pets');
  expect(status).toBe(200);
  return json.map(({ name }: { name: string }) => name);
}

const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded('the embedded store (skipped on PostgreSQL, which is not ours to stop)', () => {
  test('is shared by a second server, which takes it over when the first ends, and a third when that is killed', async () => {
    const one = await startServer(env);
    const two = await startServer(env);
    /** The log is written a moment later. */
    const told = async ({ output }: ServerProcess, what: string) => {
      const line = () => linesOf(output.stdout).find(({ msg }) => msg === `embedded store ${what}`);
      await eventually(async () => line() !== undefined);
      return line();
    };
    const folder = env.DATA_DIR;
    expect(await told(one, 'opened')).toMatchObject({ role: 'owner', folder });
    expect(await told(two, 'opened')).toMatchObject({ role: 'guest', folder });
    await create(one, 'Rex');
    expect(await names(two)).toEqual(['Rex']);
    await create(two, 'Bella');
    expect(await names(one)).toEqual(['Rex', 'Bella']);
    await one.stop('SIGTERM');
    await ready(two);
    expect(await names(two)).toEqual(['Rex', 'Bella']);
    expect(await told(two, 'taken over')).toMatchObject({ role: 'owner', folder });
    await create(two, 'Coco');
    const three = await startServer(env);
    await two.stop('SIGKILL');
    await ready(three);
    expect(await names(three)).toEqual(['Rex', 'Bella', 'Coco']);
  });

  test('keeps an animal whose creation was acknowledged, even when the process is killed right after, and opens although a socket and lock files were left behind', async () => {
    const killed = await startServer(env);
    await create(killed, 'Rex');
    await killed.stop('SIGKILL');
    expect(readdirSync(env.DATA_DIR)).toEqual(expect.arrayContaining(['.s.PGSQL.5432', 'lock', 'migration.lock']));
    // What SQLite leaves of a transaction, and what is no socket at all.
    writeFileSync(join(env.DATA_DIR, 'lock-journal'), '');
    const again = await startServer(env);
    expect(await names(again)).toEqual(['Rex']);
    await again.stop();
    writeFileSync(join(env.DATA_DIR, '.s.PGSQL.5432'), '');
    expect(await names(await startServer(env))).toEqual(['Rex']);
  });

  test('can be prepared by a server and an operator at once', async () => {
    const [server, issued] = await Promise.all([
      startServer(env),
      cli(['keys', 'issue', '--name', 'ops', '--json'], env),
    ]);
    expect(issued).toMatchObject({ code: 0, stderr: '' });
    const { key } = JSON.parse(issued.stdout);
    expect((await rest({ ...server, key }, '/v1/pets')).json).toEqual([]);
  });

  test('prints one first key when two servers start on it at once, one of them with workers', async () => {
    const { DATA_DIR } = env;
    const servers = await Promise.all([startServer({ DATA_DIR }), startServer({ DATA_DIR, WORKERS: '2' })]);
    const ended = await Promise.all(servers.map((server) => server.stop()));
    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(2).fill({ code: 0, stderr: '' }));
    expect(new Set(ended.flatMap(({ stdout }) => stdout.match(/ask_\w+/g) ?? [])).size).toBe(1);
  });
});
