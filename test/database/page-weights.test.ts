// runs: embedded

import { Records } from '#engine/records/records.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { sql } from '../support/database-access.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** How many lists share a statement. */

let sizes: number[] = [];
const database = {
  sent({ operation, size }: { operation: string; size: number }) {
    if (operation === 'list') sizes.push(size);
    return () => undefined;
  },
};
const longNames = () =>
  sql(
    store.database,
    `insert into pet (name, category_id, status)
      select repeat('x', 1000), 1, 'available' from generate_series(1, 40)`,
  );
const store = storeForAll({}, longNames, { observers: [{ database }] });

let list: (after: number) => Promise<unknown>;
beforeEach(() => {
  const pets = new Records<any, any>(store.database, PetEntity);
  list = (after) => pets.list({ limit: 20, after } as never);
});
/** The length of an item is an average. */
const learn = async () => {
  for (let time = 0; time < 100; time += 1) await list(0);
};
const together = async (after: (at: number) => number) => {
  sizes = [];
  await Promise.all(Array.from({ length: 12 }, (_, at) => list(after(at))));
  return sizes[0];
};

test('pages of long items share it with fewer others', async () => {
  // Before the first page nothing is known of the items.
  expect(await together((at) => at)).toBe(8);
  await learn();
  expect(await together((at) => at)).toBe(3);
});

test('equal pages of long items are read once, and count once', async () => {
  await learn();
  expect(await together(() => 1)).toBe(6);
});
