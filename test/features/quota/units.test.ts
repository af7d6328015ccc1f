import { FailureLimit } from '../../src/access/limits/failure-limit.ts';
import { inMemory } from '../../src/access/limits/limiter.ts';
import { Quota } from '../../src/access/limits/quota.ts';
import { expect, test } from '../support/jest.ts';

const state = (remaining: number) => ({
  limit: 10,
  remaining,
  reset: expect.any(Number),
});

test('an operation reserves its maximum cost and returns the rest; a client has its own quota', async () => {
  const quota = new Quota(10, inMemory);
  const first = await quota.take(1, 6);
  expect(first).toEqual({
    state: state(4),
    returnUnusedUnits: expect.any(Function),
  });
  // One operation may overdraw the quota while a unit is left.
  const second = await quota.take(1, 6);
  expect(second.state).toEqual(state(0));
  expect(await quota.take(1, 1)).toEqual({ state: state(0), isUsedUp: false });
  expect((await quota.take(2, 1)).state).toEqual(state(9));
  expect(await first.returnUnusedUnits?.(5)).toEqual(state(3));
  expect(await second.returnUnusedUnits?.(0)).toBeUndefined();
  await (await quota.take(1, 3)).returnUnusedUnits?.(0);
  expect(await quota.take(1, 1)).toEqual({ state: state(0), isUsedUp: true });
});

test('unused units of one minute are not returned to the next', async () => {
  const returned: unknown[] = [];
  const used = (consumedPoints: number) => ({
    consumedPoints,
    msBeforeNext: 0,
  });
  const limiter = {
    penalty: async (_key: number, units: number) => used(units),
    reward: async (_key: number, units: number) => {
      returned.push(units);
      return used(0);
    },
  };
  const quota = new Quota(100, () => limiter as never);
  // The minute ends as the units are taken.
  const { returnUnusedUnits } = await quota.take(1, 50);
  await returnUnusedUnits?.(49);
  expect(returned).toEqual([0]);
});

test.each([
  ['the same address', '192.0.2.7', '192.0.2.7', true],
  ['another address', '192.0.2.7', '192.0.2.8', false],
  ['the same /64 network', '2001:db8::1', '2001:db8:0:0:ffff::2%eth0', true],
  ['another /64 network', '2001:db8::1', '2001:db8:0:1::1', false],
  ['the same IPv4 address, mapped', '192.0.2.7', '::ffff:192.0.2.7', true],
])('whether two failed attempts limit %s', async (_, address, other, waits) => {
  const limit = new FailureLimit(2, inMemory);
  for (const attempt of ['a', 'a', 'a']) await limit.count(address, attempt);
  expect(await limit.secondsToWait(address)).toBe(0);
  await limit.count(address, 'b');
  expect(await limit.secondsToWait(address)).toBeGreaterThan(0);
  expect((await limit.secondsToWait(other)) > 0).toBe(waits);
});
