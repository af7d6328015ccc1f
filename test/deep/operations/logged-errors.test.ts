import { type ChildProcess, spawn } from 'node:child_process';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { eventually, freePort, killAll, startServer } from '../../support/process.ts';
import { hasRedis } from '../../support/redis.ts';

let database: TestDatabase;
let redis: ChildProcess;
afterEach(async () => {
  redis.kill('SIGKILL');
  await killAll();
  await database.drop();
});

(hasRedis ? test : test.skip)(
  'a password that Redis refuses is not in the log, the reason is (skipped where no redis-server is installed)',
  async () => {
    const port = await freePort();
    const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--requirepass', 'another'];
    redis = spawn('redis-server', options, { stdio: 'ignore' });
    database = await createTestDatabase();
    const { output, stop } = await startServer({
      ...database.env,
      QUOTA_PER_MINUTE: '100',
      REDIS_URL: `redis://user:hunter2-in-clear@127.0.0.1:${port}`,
    });
    await eventually(async () => /WRONGPASS/.test(output.stdout));
    const { stdout, stderr } = await stop();
    expect(stdout).toContain('Redis cannot be used');
    expect(stdout + stderr).not.toContain('hunter2');
  },
);
