import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import {
  cli,
  onPostgres,
  startAndFail,
  startServer,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';

/**
 * Other users of the machine can reach nothing in the embedded store, with any
 * permissions of its folder.
 */
const database = databaseForEach(createOwnDatabase);
const onEmbedded = onPostgres ? test.skip : test;
const common = {
  BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
  LOG_LEVEL: 'silent',
};
const rex = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

/** The files and sockets below a path that other users may open. */
function openToOthers(path: string): string[] {
  const stats = statSync(path);
  if ((stats.mode & (stats.isDirectory() ? 0o011 : 0o066)) === 0) return [];
  return stats.isDirectory()
    ? readdirSync(path).flatMap((name) => openToOthers(join(path, name)))
    : [path];
}

onEmbedded(
  'other users can open nothing in a data folder that they may enter, even if an earlier release let them (skipped on PostgreSQL, which has its own folder)',
  async () => {
    const { DATA_DIR: folder } = database.env as { DATA_DIR: string };
    const env = { ...common, DATA_DIR: folder };
    chmodSync(folder, 0o755);
    const server = await startServer(env);
    expect((await rest(server, '/v1/pets', rex)).status).toBe(201);
    expect((await cli(['keys', 'list', '--json'], env)).code).toBe(0);
    const all = ['.s.PGSQL.5432', 'lock', 'migration.lock', 'postgres'];
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(all));
    expect(statSync(join(folder, 'postgres')).mode & 0o777).toBe(0o700);
    expect(openToOthers(folder)).toEqual([]);
    await server.stop();
    expect(openToOthers(folder)).toEqual([]);

    // An earlier release left these permissions.
    chmodSync(join(folder, 'postgres'), 0o755);
    for (const name of ['lock', 'migration.lock'])
      chmodSync(join(folder, name), 0o644);
    const again = await startServer(env);
    expect(openToOthers(folder)).toEqual([]);
    expect((await rest(again, '/v1/pets')).json).toHaveLength(1);
  },
);

onEmbedded(
  'a data folder whose path is too long has its socket in the temporary folder: closed to other users, and found by another server (skipped on PostgreSQL, which has no data folder)',
  async () => {
    const { DATA_DIR: root } = database.env as { DATA_DIR: string };
    const folder = join(root, 'a-long-name-'.repeat(6), 'ü'.repeat(60));
    using temporary = mkdtempDisposableSync(
      join(tmpdir(), 'animal-store-test-'),
    );
    const { path: TMPDIR } = temporary;
    expect(Buffer.byteLength(folder)).toBeGreaterThan(107);
    const target = join(TMPDIR, 'target');
    for (const path of [folder, target])
      mkdirSync(path, { mode: 0o700, recursive: true });
    const socketFolder = join(
      TMPDIR,
      `pglite-server-${createHash('sha256').update(folder).digest('hex').slice(0, 24)}`,
    );
    const env = { ...common, DATA_DIR: folder, TMPDIR };
    const isRefused = async () =>
      expect([
        await startAndFail(env),
        await cli(['keys', 'list'], env),
      ]).toMatchObject(
        Array(2).fill({
          code: 1,
          stdout: '',
          stderr: `animal-store: The socket folder ${socketFolder} is another user's, or open to others; choose a shorter path for the data.\n`,
        }),
      );
    symlinkSync(target, socketFolder);
    await isRefused();
    expect(readdirSync(target)).toEqual([]);
    rmSync(socketFolder);
    mkdirSync(socketFolder, { mode: 0o711 });
    await isRefused();
    if (process.getuid?.() === 0) {
      chmodSync(socketFolder, 0o700);
      chownSync(socketFolder, 65_534, 65_534);
      await isRefused();
    }
    rmSync(socketFolder, { recursive: true });

    const [first, second] = [await startServer(env), await startServer(env)];
    const created = await rest(first, '/v1/pets', rex);
    expect((await rest(second, '/v1/pets')).json).toEqual([created.json]);
    expect(readdirSync(socketFolder)).toEqual(['.s.PGSQL.5432']);
    expect(openToOthers(socketFolder)).toEqual([]);
  },
);
