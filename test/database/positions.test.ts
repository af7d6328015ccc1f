import { History, type Position, positionOf } from '../../src/storage/database/positions.ts';
import { expect, test } from '../support/jest.ts';

const primary: Position = {
  isReplica: false,
  isReadOnly: false,
  system: '1',
  database: '5',
  startedAt: '0',
  timeline: 1,
  bytes: 0,
};

test('how long ago a replica had everything is known to a fortieth of the span, however much was written since', () => {
  const history = new History(1000);
  for (let since = 0; since <= 10_000; since += 1) history.add({ ...primary, bytes: 100 * since }, since);
  for (const behind of [0, 30, 500, 900]) {
    const freshAt = history.freshAt(100 * (10_000 - behind));
    expect(freshAt).toBeLessThanOrEqual(10_000 - behind);
    expect(freshAt).toBeGreaterThan(10_000 - behind - 60);
  }
  expect(history.freshAt(100)).toBe(Number.NEGATIVE_INFINITY);
});

test('a primary that writes nothing is up to date for as long as it says so', () => {
  const history = new History(1000);
  for (let since = 0; since <= 5000; since += 250) history.add({ ...primary, bytes: 7 }, since);
  expect(history.freshAt(7)).toBe(5000);
});

test('what was known of another timeline, or of another server, counts no more', () => {
  const history = new History(1000);
  history.add({ ...primary, bytes: 500 }, 1);
  history.add({ ...primary, timeline: 2, bytes: 600 }, 2);
  expect(history.freshAt(599)).toBe(Number.NEGATIVE_INFINITY);
});

test.each([
  ['the end of a record', 16_777_216 + 8192 + 25, 16_777_216 + 8192 + 25],
  ['behind the header of a page', 16_777_216 + 8192 + 24, 16_777_216 + 8192],
  ['behind the header of a segment', 16_777_216 + 40, 16_777_216],
  ['forty bytes into another page', 16_777_216 + 8192 + 40, 16_777_216 + 8192 + 40],
])('%s: byte %i of the log is byte %i', async (_, said, meant) => {
  const row = ['f', 'f', '1', '5', '0', '1', `${said}`, '16777216'];
  expect(await positionOf(async () => [row])).toMatchObject({ bytes: meant });
});
