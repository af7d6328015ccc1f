// runs: embedded, postgres

import type { Int64 } from '../../src/storage/input/int64.ts';
import { LiveList } from '../../src/storage/records/live-list.ts';
import { expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';

/** Tests the list alone: other reads share statements, too, so the service does not show who shared a read. */
test('a thousand followers at one position share their reads', async () => {
  const items: Array<{ id: Int64 }> = [{ id: 1 }];
  const reads: Int64[] = [];
  let insert = (): void => undefined;
  const list = new LiveList<{ id: Int64 }>({
    async list({ after = 0 }) {
      reads.push(after);
      return { items: items.filter(({ id }) => id > after), hasNext: false };
    },
    lastId: async () => 0,
    onInserted(listener) {
      insert = listener;
    },
  });
  // The list has no followers yet, so the insertion wakes none.
  insert();
  const counts = Array(1000).fill(0);
  const followers = counts.map(() => list.follow({ after: 0 }));
  for (const [at, additions] of followers.entries()) {
    void (async () => {
      for await (const { items: added } of additions) counts[at] += added.length;
    })();
  }
  const all = (count: number) => eventually(async () => counts.every((seen) => seen === count));
  await all(1);
  expect(new Set(reads)).toEqual(new Set([0]));
  reads.length = 0;
  items.push({ id: 2 });
  insert();
  await all(2);
  expect(new Set(reads)).toEqual(new Set([1]));
  expect(reads.length).toBeLessThan(5);
  for (const additions of followers) void additions.return();
});
