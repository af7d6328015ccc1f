import { createServer, type Socket } from 'node:net';
import { countInRedis } from '#engine/features/quota/redis.js';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';

/** A real Redis is in test/deep/features/quota. */

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
  const redis = countInRedis(`redis://127.0.0.1:${port}`, log, 'store');
  const limiter = redis.limiter({
    points: 10,
    duration: 60,
    keyPrefix: 'test',
  });
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
  const url = `redis://user:secret@127.0.0.1:${port}`;
  const redis = countInRedis(url, { info: () => undefined, warn }, 'store');
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
