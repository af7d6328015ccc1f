import type { Call } from '../call.ts';
import type { Database } from '../database/database.ts';
import type { Int64 } from '../validation/int64.ts';
import { type ListEvent, onceAvailable } from './live-list.ts';

/** Of an event: the item, or the id of one that is removed. */
export const told = Symbol('told');

/** What has happened to an item. */
export interface ItemEvent {
  /** The position of its change. */
  readonly id: Int64;
  readonly name: string;
  readonly [told]: object | Int64;
}

/** What is followed: all, or events of one name. */
export interface Followed {
  readonly after?: unknown;
  readonly only?: string;
}

/** A collection that may be followed so. */
export interface Followable {
  followAll?(
    followed: Followed,
    call: Call,
  ): AsyncGenerator<ListEvent<ItemEvent>, void>;
}

interface Change {
  readonly id: Int64;
  readonly itemId: Int64;
}

/** The collection whose changes are followed. */
interface Source {
  readonly collection: string;
  /** Reads an item from the primary; null where the call sees none. */
  read(id: Int64, call: Call): Promise<object | null>;
}

/**
 * Follows the changes of a collection as its callers see them. An item is as it
 * is now, which may be after later changes.
 */
export function followItems(
  { followChanges, traced }: Database,
  { collection, read }: Source,
  { after, only }: Followed,
  call: Call,
) {
  const query = { collection, after };
  const changes = followChanges?.(query as never, call) as AsyncGenerator<
    ListEvent<Change>,
    void
  >;
  const trace = traced.get(collection);
  const eventsOf = async (change: Change, reading: Call) => {
    const { id, itemId } = change;
    const name = trace?.eventFor({ ...change }, call);
    if (!name || (only && only !== name)) return [];
    const isRemoval = name === 'removed';
    const item = isRemoval ? itemId : await read(itemId, reading);
    // Its removal follows.
    return item ? [{ id, name, [told]: item }] : [];
  };
  async function* events(): AsyncGenerator<ListEvent<ItemEvent>, void> {
    for await (const { position, items } of changes) {
      const readAll = () => {
        const reading = call.continued();
        const all = items.map((change) => eventsOf(change, reading));
        return Promise.all(all);
      };
      const happened = (await onceAvailable(readAll, call)).flat();
      const isStart = items.length === 0;
      if (isStart || happened.length > 0) yield { position, items: happened };
    }
  }
  const all = events();
  // Otherwise it hears of `return` at the next change.
  const leave = all.return.bind(all);
  all.return = (value) => {
    void changes.return();
    return leave(value);
  };
  return all;
}
