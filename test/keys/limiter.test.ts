import {
  inMemory,
  type LimiterStore,
  secondsLeft,
} from '#engine/access/limits/limiter.js';
import { expect, test } from '../support/jest.ts';

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

test('the seconds left are between 1 and 60, also after the clock was set back', () => {
  const left = (msBeforeNext: number) => secondsLeft({ msBeforeNext } as never);
  expect([left(-5), left(1), left(59_001), left(3_600_000)]).toEqual([
    1, 1, 60, 60,
  ]);
});
