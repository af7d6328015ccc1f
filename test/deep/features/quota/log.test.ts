import { rm } from 'node:fs/promises';
import { countInRedis } from '#engine/features/quota/redis.js';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
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

(hasRedis ? test : test.skip)(
  'a node of a Redis Cluster is named once, although it counts for some keys (skipped without redis-server)',
  async () => {
    const folder = await newFolder();
    const redis = await createRedis(
      '--cluster-enabled',
      'yes',
      '--dir',
      folder,
    );
    await redis.start();
    const lines: string[] = [];
    const note = (_fields: object, line: string) => void lines.push(line);
    const log = { info: note, warn: note };
    const counter = countInRedis(redis.url, log, 'service');
    try {
      await redis.command('config set cluster-require-full-coverage no');
      await redis.command('cluster addslotsrange 0 8191');
      await eventually(async () =>
        /cluster_state:ok/.test(await redis.command('cluster info')),
      );
      const limiter = counter.limiter({ points: 9, duration: 60 });
      await eventually(async () => {
        await limiter.penalty('any', 1);
        return lines.length > 0 || counter.isUp;
      });
      for (let key = 0; key < 40; key += 1) await limiter.penalty(`${key}`, 1);
      expect(new Set(lines)).toEqual(
        new Set([
          'Redis cannot be used: every process counts quotas for itself',
        ]),
      );
      expect(lines.length).toBeLessThan(6);
    } finally {
      await counter.close();
      await redis.kill();
      await rm(folder, { recursive: true });
    }
  },
);
