import { inMemory } from '#engine/access/limits/limiter.js';
import { Quota } from '#engine/features/quota/quota.js';
import { expect, test } from '../../support/jest.ts';

const service = { name: 'service', items: 'items' };

const state = (remaining: number) => ({
  limit: 10,
  remaining,
  reset: expect.any(Number),
});

test('an operation reserves its maximum cost and returns the rest; a client has its own quota', async () => {
  const quota = new Quota(10, inMemory, service);
  const first = await quota.reserve(1, 6);
  expect(first).toEqual({
    state: state(4),
    returnUnusedUnits: expect.any(Function),
  });
  // One operation may overdraw the quota while a unit is left.
  const second = await quota.reserve(1, 6);
  expect(second.state).toEqual(state(0));
  expect(await quota.reserve(1, 1)).toEqual({
    state: state(0),
    isUsedUp: false,
  });
  expect((await quota.reserve(2, 1)).state).toEqual(state(9));
  expect(await first.returnUnusedUnits?.(5)).toEqual(state(3));
  expect(await second.returnUnusedUnits?.(0)).toBeUndefined();
  await (await quota.reserve(1, 3)).returnUnusedUnits?.(0);
  expect(await quota.reserve(1, 1)).toEqual({
    state: state(0),
    isUsedUp: true,
  });
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
  const quota = new Quota(100, () => limiter as never, service);
  // The minute ends as the units are taken.
  const { returnUnusedUnits } = await quota.reserve(1, 50);
  await returnUnusedUnits?.(49);
  expect(returned).toEqual([0]);
});
