import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { type Env, eventually, freePort, onPostgres, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** How much memory the embedded store takes: 640 MB must be enough, docs/operate.md says. */
const megabytes = 640;
const database = databaseForEach(createOwnDatabase);
let env: Env;
beforeEach(() => {
  env = { ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others', LOG_LEVEL: 'silent' };
});

/** A little of everything that it is there for. */
async function use(server: Pick<ServerProcess, 'origin' | 'key'>): Promise<void> {
  const json = { name: 'x'.repeat(1000), categoryId: 1 };
  const created = await Promise.all(
    Array.from({ length: 100 }, () => rest(server, '/v1/pets', { method: 'POST', json })),
  );
  expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]));
  for (let round = 0; round < 5; round += 1) expect((await rest(server, '/v1/pets?limit=100')).json).toHaveLength(100);
}

/** The most that a process has had in memory, in megabytes (proc(5)). */
function peakOf({ pid }: ChildProcess): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

const canBeMeasured = !onPostgres && existsSync('/proc/self/status');

(canBeMeasured ? describe : describe.skip)(
  'the embedded store (skipped on PostgreSQL, and where there is no /proc)',
  () => {
    test(`its first start and a later one take less than ${megabytes} MB`, async () => {
      for (const start of ['first', 'later']) {
        const server = await startServer(env);
        await use(server);
        expect([start, peakOf(server.child) < megabytes]).toEqual([start, true]);
        expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
      }
    });
  },
);

/** The memory controller of cgroups v1, as containers have it. */
const controller = '/sys/fs/cgroup/memory';

function canBeLimited(): boolean {
  try {
    accessSync(join(controller, 'cgroup.procs'), constants.W_OK);
    return !onPostgres;
  } catch {
    return false;
  }
}

(canBeLimited() ? describe : describe.skip)(
  'a container (skipped on PostgreSQL, and without cgroups v1 of our own)',
  () => {
    const group = join(controller, `animal-store-test-${process.pid}`);
    const children: Array<{ child: ChildProcess; ended: Promise<unknown> }> = [];
    beforeEach(() => {
      mkdirSync(group);
      writeFileSync(join(group, 'memory.limit_in_bytes'), `${megabytes * 1024 * 1024}`);
    });
    afterEach(async () => {
      for (const { child, ended } of children.splice(0)) {
        child.kill('SIGKILL');
        await ended;
      }
      rmdirSync(group);
    });

    /** Starts the server as a member of the group: nothing of it is counted elsewhere. */
    async function startInside() {
      const port = await freePort();
      const join = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
      const child = spawn('sh', ['-c', join, group, process.execPath, resolve('dist/src/main.js')], {
        env: { PATH: process.env.PATH, PORT: `${port}`, ...env },
        stdio: 'ignore',
      });
      const ended = new Promise((done) => child.once('exit', (code, signal) => done({ code, signal })));
      children.push({ child, ended });
      const origin = `http://127.0.0.1:${port}`;
      await eventually(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return true;
        return (await send(origin, { path: '/readyz' })).status === 200;
      });
      return { child, ended, origin, key: env.BOOTSTRAP_API_KEY ?? '' };
    }

    test(`${megabytes} MB are enough for a first start, and for a later one`, async () => {
      for (const _start of ['first', 'later']) {
        const server = await startInside();
        expect(server.child).toMatchObject({ exitCode: null, signalCode: null });
        await use(server);
        server.child.kill('SIGTERM');
        expect(await server.ended).toEqual({ code: 0, signal: null });
      }
    });
  },
);
