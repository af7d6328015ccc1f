import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { eventually, freePort, startServer } from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';
import { createRedis, hasRedis } from './redis.ts';

const database = databaseForEach();

test('the start line has the address of Redis without its secrets', async () => {
  const url = `redis://hunter2:hunter2@127.0.0.1:${await freePort()}/0?password=swordfish`;
  const env = { QUOTA_PER_MINUTE: '5', REDIS_URL: url };
  const server = await startServer({ ...database.env, ...env });
  const { stdout, stderr } = await server.stop();
  expect(linesOf(stdout, 'started')).toMatchObject([
    { config: { REDIS_URL: url.replace(/hunter2:hunter2@|\?.*/g, '') } },
  ]);
  for (const secret of ['hunter2', 'swordfish'])
    expect(stdout + stderr).not.toContain(secret);
});

(hasRedis ? test : test.skip)(
  'the log has the reason of a refused Redis password, but not the password (skipped without redis-server)',
  async () => {
    const redis = await createRedis('--requirepass', 'another');
    await redis.start();
    const REDIS_URL = redis.url.replace('//', '//user:hunter2-in-clear@');
    const server = await startServer({
      ...database.env,
      QUOTA_PER_MINUTE: '100',
      REDIS_URL,
    });
    await eventually(async () =>
      /WRONGPASS/.test(server.output.stdout),
    ).finally(redis.kill);
    const { stdout, stderr } = await server.stop();
    expect(stdout).toContain('Redis cannot be used');
    expect(stdout + stderr).not.toContain('hunter2');
  },
);
