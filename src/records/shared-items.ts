const serialisations = Symbol('serialisations');

/**
 * Most results of items. A client may have many serialisers: each document of a
 * subscription is one, with up to 30 MB.
 */
const maxKept = 4;

/** Immutable items, with the result of each serialiser. */
interface SharedItems extends ReadonlyArray<unknown> {
  [serialisations]?:
    | Array<{ serialiser: unknown; result: unknown }>
    | undefined;
}

/** Marks items that several requests share. They must not change afterwards. */
export function shared<Item>(items: Item[]): readonly Item[] {
  (items as SharedItems)[serialisations] = undefined;
  return items;
}

/**
 * Serialises items. Shared items are serialised once per serialiser, however
 * many requests share them.
 *
 * @param serialiser identifies `serialise`, which must be deterministic
 */
export function serialiseOnce<Item, Result>(
  items: readonly Item[],
  serialiser: unknown,
  serialise: (items: readonly Item[]) => Result,
) {
  if (!(serialisations in items)) return serialise(items);
  const kept = items as SharedItems;
  const found = kept[serialisations]?.find(
    (one) => one.serialiser === serialiser,
  );
  if (found) return found.result as Result;
  const result = serialise(items);
  kept[serialisations] = [
    { serialiser, result },
    ...(kept[serialisations] ?? []),
  ].slice(0, maxKept);
  return result;
}
