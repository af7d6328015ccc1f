import { FailureLimit } from '#engine/access/limits/failure-limit.js';
import { inMemory } from '#engine/access/limits/limiter.js';
import { expect, test } from '../support/jest.ts';

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
