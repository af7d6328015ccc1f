import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createOwnDatabase, type TestDatabase } from '../../support/database.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { type Env, killAll, onPostgres, startAndFail, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

let database: TestDatabase;
let env: Env & { DATA_DIR: string };
beforeEach(async () => {
  database = await createOwnDatabase();
  env = {
    ...(database.env as { DATA_DIR: string }),
    BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
    LOG_LEVEL: 'silent',
  };
});

const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const said = (text: string) => ({ code: 1, stdout: '', stderr: `animal-store: ${text}\n` });

/** A disk of its own for the data folder; only root has one. */
function mount(size: string, how = 'rw'): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `${how},size=${size}`, 'tmpfs', env.DATA_DIR]);
  chmodSync(env.DATA_DIR, 0o700);
}

function canMount(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0 && !onPostgres;
}

(canMount() ? describe : describe.skip)('a full disk (skipped on PostgreSQL, and where this is not root)', () => {
  afterEach(async () => {
    await killAll();
    execFileSync('umount', [env.DATA_DIR]);
    await database.drop();
  });
  const full = () =>
    `The disk of ${env.DATA_DIR} (DATA_DIR) is full. Make room and start again: what was acknowledged is there.`;

  test('at the first start is said, and once there is room the store starts', async () => {
    mount('24m');
    expect(await startAndFail(env)).toMatchObject(said(`The embedded store could not be opened: ${full()}`));
    mount('300m', 'remount');
    const server = await startServer(env);
    expect(await rest(server, '/v1/pets', newPet)).toMatchObject({ status: 201 });
  });

  test('while it serves loses nothing that was acknowledged, and at a later start is said again', async () => {
    mount('300m');
    const server = await startServer(env);
    const filler = join(env.DATA_DIR, 'filler');
    const names: string[] = [];
    for (let status = 201; status === 201; ) {
      // What PostgreSQL cannot compress.
      const name = Array.from({ length: 1000 }, () => String.fromCharCode(0x4e00 + Math.random() * 20_000)).join('');
      const answer = await rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } }).catch(
        () => null,
      );
      status = answer?.status ?? 0;
      if (status === 201) names.push(name);
      if (names.length === 20) fill(filler);
    }
    expect(names.length).toBeGreaterThanOrEqual(20);
    // Where it is the log of PostgreSQL that finds no room, the store has ended; else it refuses, and serves on.
    server.child.kill('SIGKILL');
    const { code, stderr } = await server.ended;
    if (code !== null) expect({ code, stderr }).toEqual({ code: 1, stderr: `animal-store: ${full()}\n` });
    fill(filler);
    const refused = await startAndFail(env);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    // Whichever file it is that finds no room.
    expect(refused.stderr.replace('The embedded store could not be opened: ', '')).toBe(`animal-store: ${full()}\n`);
    rmSync(filler);
    const again = await startServer(env);
    const kept = (await rest(again, '/v1/pets?limit=100')).json.map(({ name }: { name: string }) => name);
    expect(kept.slice(0, names.length)).toEqual(names.slice(0, 100));
  });
});

/** Takes all the room that there is. */
function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(65_536));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  }
}
