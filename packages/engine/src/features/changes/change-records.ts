import type { Call } from '../../call.ts';
import type { Database } from '../../database/database.ts';
import { badInput, StoreError } from '../../errors.ts';
import { Records } from '../../records/records.ts';
import { without } from '../../records/rows/ownership.ts';
import { visibleChanges } from '../../records/trace.ts';
import { hasScope } from '../../scopes.ts';
import { byAudience, type Change, ChangeEntity, change } from './change.ts';

/**
 * What has changed. A call sees the changes of the rows that it sees: those of
 * their audience at that time.
 */
export class ChangeRecords extends Records<Change, never> {
  constructor(database: Database) {
    const { filters = [], combinations = [], ...lists } = change.lists;
    super(database, ChangeEntity, {
      ...lists,
      filters: [...filters, 'audience'],
      combinations: [...combinations, ...byAudience],
      horizon: visibleChanges,
    } as never);
  }

  override narrow<Query extends object>(query: Query, call: Call) {
    this.assertListed(query);
    const { caller } = call;
    if ('audience_in' in query) return query;
    const { collection, ...others } = query as Query & Partial<Change>;
    const seen = [...this.database.traced]
      .filter(([name]) => collection === undefined || name === collection)
      .map(([name, { audiencesOf }]) => ({ name, own: audiencesOf(call) }));
    // No module has this name.
    const isOfAll = hasScope(caller, '*:read') && hasScope(caller, '*:all');
    const areOpen = seen.every(({ name, own }) => !own || `${own}` === name);
    if (isOfAll && areOpen) return query;
    if (seen.every(({ own }) => own)) {
      const all = seen.flatMap(({ own = [] }) => own);
      // No change has the audience ''.
      const audiences = all.length > 0 ? all : [''];
      return { ...others, audience_in: audiences } as never;
    }
    if (collection !== undefined) return query;
    throw badInput('collection must be given: the key sees all rows of some.');
  }

  override shown(items: readonly Change[], call: Call) {
    const { hiding, traced } = this.database;
    const isConverted = [...traced.values()].some(({ shown }) => shown);
    if (hiding.size === 0 && !isConverted) return items;
    return items.map((item) => this.#shown(item, call));
  }

  /** Without the members that the call does not see in rows of its audience. */
  #shown(stored: Change, call: Call): Change {
    const { hiding, traced } = this.database;
    const { audience } = stored as Change & { audience: string };
    const { table = '', shown } = traced.get(stored.collection) ?? {};
    const owned = hiding.get(table);
    const [member = ''] = owned?.members ?? [];
    const [, owner] = audience.split(/ (.*)/s);
    const row = owner === undefined ? {} : { [member]: owner };
    const hidden = owned?.hiddenFrom(row, call) ?? [];
    const show = (values: unknown) => {
      const known = values && (shown?.(values as never) ?? values);
      return known && without(known, hidden);
    };
    const { before, after } = stored;
    return { ...stored, before: show(before), after: show(after) };
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
