import { type Follower, LiveList } from '../../src/api/subscriptions/live-list.ts';
import type { NextQuery, Source } from '../../src/api/subscriptions/source.ts';
import type { Int64 } from '../../src/storage/input/int64.ts';
import { afterEach, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';

interface Item {
  id: Int64;
  kind: string;
}

/** A list in memory that notes how it is read, and whose reads may be held up. */
class Shelf implements Source<Item> {
  readonly filteredBy = 'kind';
  readonly items: Item[] = [];
  readonly reads: NextQuery[] = [];
  gate: Promise<void> | undefined;
  #last = 0;
  #told: () => void = () => undefined;

  add(kind: string): void {
    this.#last += 1;
    this.items.push({ id: this.#last, kind });
    this.#told();
  }

  async next(query: NextQuery) {
    this.reads.push(query);
    const { after, filter } = query;
    const items = this.items.filter(({ id, kind }) => id > after && (filter === null || filter === kind));
    const upTo = Math.max(Number(after), Number(await this.last()));
    await this.gate;
    return { items, upTo, hasNext: false, bytes: items.length };
  }

  async last() {
    return this.items.at(-1)?.id ?? 0;
  }

  onInserted(listener: () => void): void {
    this.#told = listener;
  }
}

const followers: Array<Follower<Item>> = [];
afterEach(async () => {
  for (const one of followers.splice(0)) await one.return();
});

/** Follows a list to its end. @returns the ids that have come so far */
async function following(list: LiveList<Item>, query: { after?: Int64; kind?: string }): Promise<Int64[]> {
  const follower = await list.follow(query);
  followers.push(follower);
  const ids: Int64[] = [];
  void (async () => {
    for await (const items of follower) ids.push(...items.map(({ id }) => id));
  })();
  return ids;
}

test('whoever names a position far ahead keeps nobody from following together', async () => {
  const shelf = new Shelf();
  const list = new LiveList(shelf);
  const ahead = await following(list, { after: 1_000_000 });
  await eventually(async () => shelf.reads.length > 1);
  const all = await following(list, { after: 0 });
  const balls = await following(list, { after: 0, kind: 'ball' });
  shelf.add('ball');
  await eventually(async () => all.length === 1 && balls.length === 1);
  shelf.reads.length = 0;
  shelf.add('bone');
  shelf.add('ball');
  await eventually(async () => all.length === 3 && balls.length === 2);
  expect([all, balls, ahead]).toEqual([[1, 2, 3], [1, 3], []]);
  // One loop has read for all of them.
  expect(shelf.reads.filter(({ filter }) => filter !== null)).toEqual([]);
});

test('whoever begins farther back while the end is being read leaves no gap', async () => {
  const shelf = new Shelf();
  const list = new LiveList(shelf);
  for (let count = 0; count < 5; count += 1) shelf.add('ball');
  await following(list, { after: 5 });
  await eventually(async () => shelf.reads.length > 1);
  let open: () => void = () => undefined;
  shelf.gate = new Promise((done) => (open = done));
  const reads = shelf.reads.length;
  await eventually(async () => shelf.reads.length > reads);
  shelf.gate = undefined;
  // A server that is behind has answered it: it waits at 3, and the end is being read after 5.
  const { items } = shelf;
  const newest = items.splice(3);
  const behind = await following(list, { after: 0 });
  await eventually(async () => behind.length === 3);
  items.push(...newest);
  shelf.add('ball');
  open();
  await eventually(async () => behind.length >= 6);
  expect(behind).toEqual([1, 2, 3, 4, 5, 6]);
});

test('the last one who leaves takes with it what was kept', async () => {
  const shelf = new Shelf();
  const list = new LiveList(shelf);
  const first = await following(list, { after: 0 });
  shelf.add('ball');
  await eventually(async () => first.length === 1);
  await followers[0]?.return();
  shelf.items.length = 0;
  const second = await following(list, { after: 0 });
  shelf.add('bone');
  await eventually(async () => second.length > 0);
  expect([first, second]).toEqual([[1], [2]]);
});
