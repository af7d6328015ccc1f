import { createHash } from 'node:crypto';

/** @returns the items in an order that only the seed and their names decide */
export function shuffled<Item>(
  items: readonly Item[],
  seed: string,
  nameOf: (item: Item) => string,
): Item[] {
  const places = items.map((item, at) => {
    const place = createHash('sha256')
      .update(`${seed} ${at} ${nameOf(item)}`)
      .digest('hex');
    return { item, place };
  });
  return places
    .sort((one, other) => (one.place < other.place ? -1 : 1))
    .map(({ item }) => item);
}
