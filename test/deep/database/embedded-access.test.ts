import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { cli, type Env, onPostgres, startAndFail, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** What other users of the machine can reach of the embedded store: nothing, whatever the folder is like that it is in. */
const database = databaseForEach(createOwnDatabase);
let env: Env & { DATA_DIR: string };
let folder: string;
beforeEach(() => {
  env = {
    ...(database.env as { DATA_DIR: string }),
    BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
    LOG_LEVEL: 'silent',
  };
  folder = env.DATA_DIR;
});

const onEmbedded = onPostgres ? describe.skip : describe;
const isRoot = process.getuid?.() === 0;

/** Whatever somebody else may open, in a folder that they may enter; sockets, too. */
function openToOthers(path: string): string[] {
  const { mode } = statSync(path);
  const isFolder = (mode & 0o170000) === 0o040000;
  if ((mode & (isFolder ? 0o011 : 0o066)) === 0) return [];
  return isFolder ? readdirSync(path).flatMap((name) => openToOthers(join(path, name))) : [path];
}

onEmbedded('a data folder that others may enter (skipped on PostgreSQL, which has its own)', () => {
  beforeEach(() => chmodSync(folder, 0o755));

  test('holds nothing that they can reach: not the database, not the socket, not the locks, even if they could before', async () => {
    const server = await startServer(env);
    expect((await rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } })).status).toBe(201);
    expect((await cli(['keys', 'list', '--json'], env)).code).toBe(0);
    expect(readdirSync(folder)).toEqual(
      expect.arrayContaining(['.s.PGSQL.5432', 'lock', 'migration.lock', 'postgres']),
    );
    expect(statSync(join(folder, 'postgres')).mode & 0o777).toBe(0o700);
    expect(openToOthers(folder)).toEqual([]);
    await server.stop();
    expect(openToOthers(folder)).toEqual([]);

    // As an earlier release has left it.
    chmodSync(join(folder, 'postgres'), 0o755);
    chmodSync(join(folder, 'lock'), 0o644);
    chmodSync(join(folder, 'migration.lock'), 0o644);
    const again = await startServer(env);
    expect(openToOthers(folder)).toEqual([]);
    expect((await rest(again, '/v1/pets')).json).toHaveLength(1);
  });
});

onEmbedded('a socket folder in the temporary folder (skipped on PostgreSQL, which has no such thing)', () => {
  let temporary: string;
  let socketFolder: string;
  beforeEach(() => {
    temporary = mkdtempSync(join(tmpdir(), 'animal-store-test-'));
    // Too long for the address of a Unix socket.
    folder = join(folder, 'a-long-name-'.repeat(6), 'ü'.repeat(60));
    mkdirSync(folder, { mode: 0o700, recursive: true });
    env = { ...env, DATA_DIR: folder, TMPDIR: temporary };
    socketFolder = join(temporary, `animal-store-${createHash('sha256').update(folder).digest('hex').slice(0, 24)}`);
  });
  afterEach(() => rmSync(temporary, { recursive: true, force: true }));

  test('is made where the path of the data folder is too long, closed to others, and another server finds it', async () => {
    expect(Buffer.byteLength(folder)).toBeGreaterThan(107);
    const [one, two] = [await startServer(env), await startServer(env)];
    const created = await rest(one, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
    expect((await rest(two, '/v1/pets')).json).toEqual([created.json]);
    expect(readdirSync(socketFolder)).toEqual(['.s.PGSQL.5432']);
    expect(openToOthers(socketFolder)).toEqual([]);
  });

  test("is not a link, is not open to others, and is not another user's", async () => {
    const refusal = {
      code: 1,
      stdout: '',
      stderr: `animal-store: The socket folder ${socketFolder} is another user's, or open to others; choose a shorter DATA_DIR.\n`,
    };
    const target = join(temporary, 'target');
    mkdirSync(target, { mode: 0o700 });
    symlinkSync(target, socketFolder);
    for (const ended of [await startAndFail(env), await cli(['keys', 'list'], env)]) {
      expect(ended).toMatchObject(refusal);
    }
    expect(readdirSync(target)).toEqual([]);
    rmSync(socketFolder);
    mkdirSync(socketFolder);
    chmodSync(socketFolder, 0o711);
    expect(await startAndFail(env)).toMatchObject(refusal);
    if (!isRoot) return;
    chmodSync(socketFolder, 0o700);
    chownSync(socketFolder, 65_534, 65_534);
    expect(await startAndFail(env)).toMatchObject(refusal);
  });
});
