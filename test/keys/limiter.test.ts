import { createServer, type Socket } from 'node:net';
import {
  countInRedis,
  inMemory,
  type LimiterStore,
  secondsLeft,
} from '../../src/access/limits/limiter.ts';
import { expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';

/**
 * The service's tests have real workers and a real Redis (test/deep/keys);
 * these tests need neither.
 */
const limiterOf = (counting: LimiterStore) =>
  counting({ points: 10, duration: 60, keyPrefix: 'test' });

test('units are counted and given back by key', async () => {
  const limiter = limiterOf(inMemory);
  expect((await limiter.penalty('a', 7)).consumedPoints).toBe(7);
  expect((await limiter.penalty('a', 7)).consumedPoints).toBe(14);
  expect((await limiter.reward('a', 4)).consumedPoints).toBe(10);
  expect((await limiter.penalty('b', 1)).consumedPoints).toBe(1);
  await limiter.delete('a');
  expect(await limiter.get('a')).toBeNull();
});

test('while Redis does not respond, this process counts, and the log has one line about it', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(
    0,
    '127.0.0.1',
  );
  await new Promise((listening) => silent.once('listening', listening));
  const { port } = silent.address() as { port: number };
  const lines: string[] = [];
  const log = {
    info: (_: object, line: string) => lines.push(line),
    warn: (_: object, line: string) => lines.push(line),
  };
  const redis = await countInRedis(`redis://127.0.0.1:${port}`, log);
  const limiter = limiterOf(redis.limiter);
  expect((await limiter.penalty('a', 7)).consumedPoints).toBe(7);
  expect((await limiter.penalty('a', 7)).consumedPoints).toBe(14);
  expect(redis.isUp).toBe(false);
  expect(lines).toEqual([
    'Redis cannot be used: every process counts quotas for itself',
  ]);
  redis.close();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('a Redis that is too slow at first, and then refuses the password, has a line for each reason', async () => {
  let isSlow = true;
  const redisLike = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on(
      'data',
      (commands) =>
        isSlow ||
        socket.write(
          '-WRONGPASS\r\n'.repeat(`${commands}`.split('*').length - 1),
        ),
    );
    socket.on('close', () => {
      isSlow = false;
    });
  }).listen(0, '127.0.0.1');
  await new Promise((listening) => redisLike.once('listening', listening));
  const reasons: string[] = [];
  const warn = ({ err }: { err?: Error }) => reasons.push(err?.message ?? '');
  const { port } = redisLike.address() as { port: number };
  const redis = await countInRedis(`redis://user:secret@127.0.0.1:${port}`, {
    info: () => undefined,
    warn,
  });
  await eventually(async () =>
    reasons.some((reason) => reason.includes('WRONGPASS')),
  );
  expect(reasons).toEqual([
    expect.stringContaining('Socket timeout'),
    expect.stringContaining('WRONGPASS'),
  ]);
  redis.close();
  redisLike.close();
});

test('the seconds left are between 1 and 60, also after the clock was set back', () => {
  const left = (msBeforeNext: number) => secondsLeft({ msBeforeNext } as never);
  expect([left(-5), left(1), left(59_001), left(3_600_000)]).toEqual([
    1, 1, 60, 60,
  ]);
});
