import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from '../call.ts';
import type { Database } from '../database/database.ts';
import { Unavailable } from '../errors.ts';
import type { Int64 } from '../validation/int64.ts';
import type { ListEvent } from './live-list.ts';
import type { Ownership } from './rows/ownership.ts';

/** Of an event: the item, or the id of one that is removed. */
export const told = Symbol('told');

const names = { created: 'added', changed: 'changed', removed: 'removed' };

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
  readonly action: keyof typeof names;
  readonly version: number;
  readonly after: object | null;
}

/** The collection whose changes are followed. */
interface Source {
  readonly collection: string;
  readonly owned: Ownership;
  /** Reads an item from the primary; null where the call sees none. */
  read(id: Int64, call: Call): Promise<object | null>;
}

/**
 * Follows the changes of a collection as its callers see them. An item is as it
 * is now, which may be after later changes.
 */
export function followItems(
  { followChanges }: Database,
  { collection, owned, read }: Source,
  { after, only }: Followed,
  call: Call,
) {
  const query = { collection, after };
  const changes = followChanges?.(query as never, call) as AsyncGenerator<
    ListEvent<Change>,
    void
  >;
  const views = owned.viewsIn(call);
  const chosenBy = views?.flatMap(({ values }) => Object.keys(values)) ?? [];
  const eventsOf = async (change: Change, reading: Call) => {
    const { id, itemId, action, version, after } = change;
    const isCreation = action === 'created';
    const isHandedOver = isCreation && version > 1;
    if (isHandedOver && !views) return [];
    const isRemoval = action === 'removed';
    const item = isRemoval ? null : await read(itemId, reading);
    const isOfOther = chosenBy.some((member) => member in (after ?? {}));
    const hasLeft = !isCreation && isOfOther;
    // Its removal follows.
    if (!item && !isRemoval && !hasLeft) return [];
    const name = item ? names[action] : 'removed';
    const isWanted = !only || only === name;
    return isWanted ? [{ id, name, [told]: item ?? itemId }] : [];
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

/** How long (ms) it waits for the database before it reads again. */
const pause = 500;

async function onceAvailable<Result>(read: () => Promise<Result>, call: Call) {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof Unavailable) || call.hasLeft) throw error;
      await sleep(pause);
    }
  }
}
