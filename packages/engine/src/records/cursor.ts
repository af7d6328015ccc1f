import { badInput } from '../errors.ts';
import { type Int64, int64From, int64FromText } from '../validation/int64.ts';
import { maxCursorLength } from '../validation/page.ts';

/** A place in a list: that of the item with this id. */
export interface Place {
  readonly id: Int64;
  /** The item's value as PostgreSQL's text, in an order by that member. */
  readonly value?: string;
}

/** The member that a list is sorted by. */
export function sortedMember(sort: string) {
  return sort.replace(/_desc$/, '');
}

/** The cursor of a place in an order by a member other than the id. */
export function cursorOf(sort: string, value: string, id: Int64) {
  const place = JSON.stringify([sortedMember(sort), value, `${id}`]);
  return Buffer.from(place).toString('base64url');
}

/**
 * The cursor of a place one id further, so that a list in the other direction
 * begins with its item. Beyond the greatest id there is none.
 */
export function cursorBeside(
  { id, value }: Place,
  { sort, isDescending }: { sort: string; isDescending: boolean },
) {
  const step = isDescending ? -1n : 1n;
  const within = int64From(BigInt(id) + step) ?? id;
  if (value === undefined) return `${within}`;
  return cursorOf(sort, value, within);
}

/**
 * @param cursor the id, in an order by ids
 * @throws StoreError BAD_USER_INPUT for a cursor of another order
 */
export function placeOf(
  cursor: Int64 | string,
  { sort = 'id', parameter = 'after' }: Asked,
): Place {
  const by = sortedMember(sort);
  if (by === 'id') {
    const id = int64From(cursor) ?? int64FromText(cursor);
    if (id === undefined) throw notACursor({ sort, parameter });
    return { id };
  }
  const [member, value, digits] = parsed(`${cursor}`);
  const id = int64FromText(digits);
  if (member !== by || typeof value !== 'string' || id === undefined)
    throw notACursor({ sort, parameter });
  return { id, value };
}

/** The order of a list, and the parameter with the cursor. */
interface Asked {
  readonly sort?: string | undefined;
  readonly parameter?: 'after' | 'before';
}

function parsed(cursor: string): unknown[] {
  if (cursor.length > maxCursorLength) return [];
  try {
    const place = JSON.parse(`${Buffer.from(cursor, 'base64url')}`);
    if (Array.isArray(place)) return place;
  } catch {
    // It is no JSON.
  }
  return [];
}

export function notACursor({ sort, parameter = 'after' }: Asked) {
  const end = parameter === 'after' ? 'last' : 'first';
  const message = `${parameter} is not a cursor of this list sorted by ${sort}: it must be that of its ${end} item.`;
  return badInput(message);
}
