import { createHash } from 'node:crypto';

/**
 * Items in an order of the seed. An item keeps its place among the others when
 * some are added or removed.
 *
 * @param nameOf must give the same name on every machine
 */
export function shuffled<Item>(
  items: readonly Item[],
  seed: string,
  nameOf: (item: Item) => string,
): Item[] {
  const placed = items.map((item) => {
    const place = createHash('sha256')
      .update(`${seed} ${nameOf(item)}`)
      .digest('hex');
    return { item, place };
  });
  return placed
    .sort((one, other) => one.place.localeCompare(other.place))
    .map(({ item }) => item);
}
