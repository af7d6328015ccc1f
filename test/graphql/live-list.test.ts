import type { Int64 } from '../../src/storage/input/int64.ts';
import { type FollowQuery, LiveList } from '../../src/storage/records/live-list.ts';
import { afterEach, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';

interface Item {
  id: Int64;
  kind: string;
}

/** A list in memory that notes how it is read. A read may be delayed after its moment. */
class Shelf {
  readonly items: Item[] = [];
  readonly reads: Array<FollowQuery<Item>> = [];
  delay: Promise<void> | undefined;
  #inserted = (): void => undefined;

  add(kind: string): void {
    this.items.push({ id: this.items.length + 1, kind });
    this.#inserted();
  }

  async list({ after = 0, kind, limit }: FollowQuery<Item> & { limit: number }) {
    this.reads.push({ after, kind });
    const items = this.items.filter((item) => item.id > after && (kind === undefined || kind === item.kind));
    await this.delay;
    return { items: items.slice(0, limit), hasNext: items.length > limit };
  }

  async lastId() {
    return this.items.at(-1)?.id ?? 0;
  }

  onInserted(listener: () => void): void {
    this.#inserted = listener;
  }
}

const shelf = () => {
  const items = new Shelf();
  return { shelf: items, list: new LiveList<Item>(items) };
};
const ends: Array<() => void> = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Follows a list. @returns the ids that have come so far */
function following(list: LiveList<Item>, query: FollowQuery<Item> = {}): Int64[] {
  const additions = list.follow(query);
  const ids: Int64[] = [];
  let isOver = false;
  ends.push(() => {
    isOver = true;
  });
  void (async () => {
    for await (const { items } of additions) {
      if (isOver) return;
      ids.push(...items.map(({ id }) => id));
    }
  })();
  return ids;
}

test('a thousand followers at one position share their reads', async () => {
  const { shelf: items, list } = shelf();
  items.add('ball');
  const all = Array.from({ length: 1000 }, () => following(list, { after: 0 }));
  await eventually(async () => all.every((ids) => ids.length === 1));
  expect(items.reads.every(({ after }) => after === 0)).toBe(true);
  items.reads.length = 0;
  items.add('bone');
  await eventually(async () => all.every((ids) => ids.length === 2));
  expect(items.reads.every(({ after }) => after === 1)).toBe(true);
  expect(items.reads.length).toBeLessThan(5);
});

test('an item that is added during a read is found by the next one at once', async () => {
  const { shelf: items, list } = shelf();
  let open = (): void => undefined;
  items.delay = new Promise((done) => (open = done));
  const ids = following(list, { after: 0 });
  await eventually(async () => items.reads.length === 1);
  items.add('ball');
  // Long enough for the look that the insertion causes.
  await eventually(async () => items.reads.length === 1);
  items.delay = undefined;
  open();
  await eventually(async () => ids.length === 1);
  expect(ids).toEqual([1]);
});

test('when the last follower has gone the list is not read any more', async () => {
  const { shelf: items, list } = shelf();
  const additions = list.follow({ after: 0 });
  await additions.next();
  items.add('ball');
  await additions.next();
  await additions.return();
  items.reads.length = 0;
  for (let at = 0; at < 10; at += 1) items.add('ball');
  const other = list.follow({ after: 5 });
  await other.next();
  expect((await other.next()).value?.items.map(({ id }) => id)).toEqual([6, 7, 8, 9, 10, 11]);
  expect(items.reads).toEqual([{ after: 5 }]);
  await other.return();
});

test('a follower that leaves a quiet list ends, although no item is added', async () => {
  const { shelf: items, list } = shelf();
  const additions = list.follow({ after: 0 });
  await additions.next();
  const next = additions.next();
  await eventually(async () => items.reads.length > 0);
  await additions.return();
  expect(await next).toEqual({ value: undefined, done: true });
});
