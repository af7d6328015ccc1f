import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { freePort } from '../../../support/process.ts';
import { doctor, ok } from '../../support/doctor.ts';
import { createRedis, hasRedis } from './redis.ts';

const database = databaseForEach(createOwnDatabase);

test('Redis is asked; one that does not answer is a warning', async () => {
  const REDIS_URL = `redis://127.0.0.1:${await freePort()}`;
  const { code, checks } = await doctor({ ...database.env, REDIS_URL });
  expect(code).toBe(0);
  expect(checks.redis).toEqual({
    state: 'warning',
    found: expect.stringContaining('ECONNREFUSED'),
    remedy: expect.stringContaining('REDIS_URL'),
  });
});

(hasRedis ? test : test.skip)(
  'Redis is usable (skipped without redis-server)',
  async () => {
    const redis = await createRedis();
    await redis.start();
    const { checks } = await doctor({ ...database.env, REDIS_URL: redis.url });
    await redis.kill();
    expect(checks.redis).toEqual(ok('usable'));
  },
);

(hasRedis ? test : test.skip).each([
  ['a replica', 'replicaof 127.0.0.1 1', 'READONLY'],
  ['full', 'config set maxmemory 1', 'OOM'],
])(
  'Redis that is %s cannot count: a warning (skipped without redis-server)',
  async (_how, command, found) => {
    const redis = await createRedis();
    await redis.start();
    await redis.command(command);
    const { checks } = await doctor({ ...database.env, REDIS_URL: redis.url });
    await redis.kill();
    expect(checks.redis).toMatchObject({
      state: 'warning',
      found: expect.stringContaining(found),
    });
  },
);

(hasRedis ? test : test.skip)(
  'Redis is usable by a user of the keys of quotas alone (skipped without redis-server)',
  async () => {
    const redis = await createRedis();
    await redis.start();
    const rights = '~animal-store:quota:* +@all';
    await redis.command('acl setuser counter on >secret', rights);
    const url = redis.url.replace('//', '//counter:secret@');
    const { checks } = await doctor({ ...database.env, REDIS_URL: url });
    await redis.kill();
    expect(checks.redis).toEqual(ok('usable'));
  },
);
