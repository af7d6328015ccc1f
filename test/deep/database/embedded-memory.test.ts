import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { onPostgres, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** How much memory the embedded store takes: 640 MB must be enough, docs/operate.md says. */
const megabytes = 640;
const database = databaseForEach(createOwnDatabase);

/** A little of everything that it is there for. */
async function use(server: ServerProcess): Promise<void> {
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

(canBeMeasured ? test : test.skip)(
  `a first start of the embedded store and a later one take less than ${megabytes} MB (skipped on PostgreSQL, and where there is no /proc)`,
  async () => {
    const env = { ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others', LOG_LEVEL: 'silent' };
    for (const start of ['first', 'later']) {
      const server = await startServer(env);
      await use(server);
      expect([start, peakOf(server.child) < megabytes]).toEqual([start, true]);
      expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
    }
  },
);
