import type { Call } from '../../call.ts';
import type { Database } from '../../database/database.ts';
import { badInput, StoreError } from '../../errors.ts';
import { Records } from '../../records/records.ts';
import { without } from '../../records/rows/ownership.ts';
import { keptIn, visibleChanges } from '../../records/trace.ts';
import { hasScope } from '../../scopes.ts';
import type { Int64 } from '../../validation/int64.ts';
import { mapMembers } from '../../validation/schemas.ts';
import {
  byReader,
  type Change,
  ChangeEntity,
  change,
  readers,
} from './change.ts';

/**
 * What has changed. A call sees the changes of the rows that it sees: those of
 * their audience at that time.
 */
export class ChangeRecords extends Records<Change, never> {
  constructor(database: Database) {
    const { filters = [], combinations = [], ...lists } = change.lists;
    super(database, ChangeEntity, {
      ...lists,
      filters: [...filters, ...readers],
      combinations: [...combinations, ...byReader],
      either: readers,
      horizon: visibleChanges,
    } as never);
  }

  override narrow<Query extends object>(query: Query, call: Call) {
    this.assertListed(query);
    const { caller } = call;
    if (readers.some((by) => `${by}_in` in query)) return query;
    const { collection, ...others } = query as Query & Partial<Change>;
    const asked = others.actor == null ? [] : ['changedBy'];
    const seen = [...this.database.traced]
      .filter(([name]) => collection === undefined || name === collection)
      .map(([name, trace]) => ({ name, own: trace.readersOf(call, asked) }));
    // No module has this name.
    const isOfAll = hasScope(caller, '*:read') && hasScope(caller, '*:all');
    const areOpen = seen.every(
      ({ name, own }) => !own || own[0]?.name === name,
    );
    if (isOfAll && areOpen) return query;
    if (seen.every(({ own }) => own)) {
      const all = seen.flatMap(({ own = [] }) => own);
      // No change has the audience ''.
      if (all.length === 0) all.push({ by: 'audience', name: '' });
      const named = Object.groupBy(all, ({ by }) => `${by}_in`);
      const filters = mapMembers(named, (one) => one.map(({ name }) => name));
      return { ...others, ...filters } as never;
    }
    if (collection !== undefined) return query;
    throw badInput('collection must be given: the key sees all rows of some.');
  }

  override shown(items: readonly Change[], call: Call) {
    return items.map((item) => this.#shown(item, call));
  }

  /**
   * Without the members that the call does not see in rows of its audience, and
   * without what a row has become that leaves it (of which `eventFor` knows the
   * whole).
   */
  #shown(stored: Change, call: Call): Change {
    const trace = this.database.traced.get(stored.collection);
    const hidden = trace?.hiddenFrom({ ...stored }, call) ?? [];
    const show = (values: unknown, unseen = hidden) => {
      const known = values && (trace?.shown?.(values as never) ?? values);
      return known && without(known, unseen);
    };
    const { before, after, action } = stored;
    const isLeft =
      action === 'changed' &&
      trace?.eventFor({ ...stored }, call) === 'removed';
    const unseen = isLeft ? Object.keys(after ?? {}) : hidden;
    const known = {
      ...stored,
      before: show(before),
      after: show(after, unseen),
    };
    const isOfUnknown = hidden.includes('changedBy');
    return isOfUnknown ? { ...known, actor: null, tenant: null } : known;
  }

  async assertKept(position: Int64, call: Call) {
    const { before } = await keptIn(this.database, call);
    // 0 is before all that are kept.
    if (position > 0 && position < before)
      throw new StoreError('GONE', 'Changes after this position have expired.');
  }

  override onInserted(listener: () => void) {
    this.database.onTraced.add(listener);
  }

  /** Only lists know whose they are: another subgraph refers to none. */
  override async find() {
    return null;
  }

  override async create(): Promise<never> {
    throw new StoreError('FORBIDDEN', 'Changes are stored by what they tell.');
  }
}
