// runs: embedded, postgres

import { LiveList } from '#engine/records/live-list.js';
import type { Int64 } from '#engine/validation/int64.js';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { eventually } from '../support/process.ts';

/**
 * Tests the list alone: other reads share statements, too, so the service does
 * not show who shared a read.
 */
test('a thousand followers at one position share their reads', async () => {
  const items: Array<{ id: Int64 }> = [{ id: 1 }];
  const reads: Int64[] = [];
  let insert = (): void => undefined;
  const list = new LiveList<{ id: Int64 }>({
    async list({ after = 0 }) {
      reads.push(Number(after));
      return {
        items: items.filter(({ id }) => id > Number(after)),
        hasNext: false,
      };
    },
    lastId: async () => 0,
    onInserted(listener) {
      insert = listener;
    },
  });
  // The list has no followers yet, so the insertion wakes none.
  insert();
  const counts = Array(1000).fill(0);
  const followers = counts.map(() => list.subscribe({ after: 0 } as never));
  for (const [at, additions] of followers.entries()) {
    void (async () => {
      for await (const { items: added } of additions)
        counts[at] += added.length;
    })();
  }
  const all = (count: number) =>
    eventually(async () => counts.every((seen) => seen === count));
  await all(1);
  // On a busy machine the followers look again at their new position before
  // this goes on.
  expect(new Set(reads.filter((after) => after !== 1))).toEqual(new Set([0]));
  reads.length = 0;
  items.push({ id: 2 });
  insert();
  await all(2);
  expect(new Set(reads.filter((after) => after !== 2))).toEqual(new Set([1]));
  expect(reads.filter((after) => after === 1).length).toBeLessThan(5);
  for (const additions of followers) void additions.return();
});

describe('without a poll', () => {
  const { setTimeout: started } = globalThis;
  beforeEach(() => {
    globalThis.setTimeout = (() => ({ unref: () => undefined })) as never;
  });
  afterEach(() => {
    globalThis.setTimeout = started;
  });

  /** A list of the items after an id, a hundred at a time. */
  const listOf = (items: Array<{ id: Int64 }>) =>
    new LiveList<{ id: Int64 }>({
      async list({ after = 0, limit }) {
        const found = items.filter(({ id }) => id > Number(after));
        return { items: found.slice(0, limit), hasNext: found.length > limit };
      },
      lastId: async () => 0,
      onInserted: () => undefined,
    });
  /** Everything that a follower gets in many turns of the event loop. */
  async function followed(list: LiveList<{ id: Int64 }>): Promise<Int64[]> {
    const additions = list.subscribe({ after: 0 } as never);
    const ids: Int64[] = [];
    void (async () => {
      for await (const { items } of additions)
        ids.push(...items.map(({ id }) => id));
    })();
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    void additions.return();
    return ids;
  }

  test('a follower gets all pages that there are', async () => {
    const items = Array.from({ length: 350 }, (_, at) => ({ id: at + 1 }));
    expect(await followed(listOf(items))).toEqual(items.map(({ id }) => id));
  });

  test('a new follower gets the current list, not the page that others have read', async () => {
    const items = [{ id: 1 }];
    const list = listOf(items);
    expect(await followed(list)).toEqual([1]);
    items.push({ id: 2 });
    expect(await followed(list)).toEqual([1, 2]);
  });
});

describe('the polls', () => {
  const { setTimeout: started } = globalThis;
  let delays: number[] = [];
  let polls: Array<() => void> = [];
  beforeEach(() => {
    [delays, polls] = [[], []];
    globalThis.setTimeout = ((poll: () => void, milliseconds: number) => {
      // Of Jest, and of services in this thread; longer than any poll.
      if (milliseconds > 2000) return started(poll, milliseconds);
      delays.push(milliseconds);
      polls.push(poll);
      return { unref: () => undefined };
    }) as never;
  });
  afterEach(() => {
    globalThis.setTimeout = started;
  });

  const turns = async () => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  };
  /** An empty list with two followers. @returns what tells of an insertion */
  async function twoFollowers() {
    let insert = (): void => undefined;
    const list = new LiveList<{ id: Int64 }>({
      list: async () => ({ items: [], hasNext: false }),
      lastId: async () => 0,
      onInserted(listener) {
        insert = listener;
      },
    });
    for (const _ of [1, 2]) {
      void (async () => {
        for await (const _ of list.subscribe({ after: 0 } as never));
      })();
    }
    await turns();
    return () => insert();
  }

  test('of a list that stays quiet are half a second apart at most', async () => {
    await twoFollowers();
    for (let time = 0; time < 30; time += 1) {
      polls.at(-1)?.();
      await turns();
    }
    expect(delays.length).toBeGreaterThan(30);
    expect(Math.max(...delays)).toBeLessThanOrEqual(500);
  });

  test('an insertion wakes each of several followers soon', async () => {
    const insert = await twoFollowers();
    const before = delays.length;
    insert();
    expect(delays.slice(before)).toHaveLength(1);
    expect(delays.at(-1)).toBeLessThan(50);
  });
});
