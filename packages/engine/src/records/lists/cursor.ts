import { badInput } from '../../errors.ts';
import { int64From, int64FromText } from '../../validation/int64.ts';
import { maxCursorLength, type PageQuery } from '../../validation/page.ts';

// A place in a list is that of an item: its id, and in an order by another
// member its value, as PostgreSQL's text. A cursor is a place as clients send
// it.

/** The member that a list is sorted by. */
export function sortedMember(sort: string) {
  return sort.endsWith('_desc') ? sort.slice(0, -5) : sort;
}

/** @param place where the order is the id, without a value */
export function cursorOf(
  { id, value }: { id: unknown; value?: string | null | undefined },
  sort: string,
) {
  if (value === undefined) return `${id}`;
  const place = JSON.stringify([sortedMember(sort), value, `${id}`]);
  return Buffer.from(place).toString('base64url');
}

/**
 * The cursor one id further, so that a list in the other direction begins with
 * the item of the place. Beyond the greatest id there is none.
 */
export function cursorBeside(
  { id, value }: NonNullable<ReturnType<typeof placeIn>>,
  { sort, isDescending }: { sort: string; isDescending: boolean },
) {
  const step = isDescending ? -1n : 1n;
  return cursorOf({ id: int64From(BigInt(id) + step) ?? id, value }, sort);
}

/**
 * The place that the cursor of a query names, if it has one.
 *
 * @param hasNulls whether its value may be null
 * @throws StoreError BAD_USER_INPUT for a cursor of another order
 */
export function placeIn(
  { after, before }: Partial<PageQuery>,
  sort: string,
  hasNulls = false,
) {
  const cursor = after ?? before;
  if (cursor === undefined) return undefined;
  const isBackward = after === undefined;
  const by = sortedMember(sort);
  if (by === 'id') {
    const id = int64From(cursor) ?? int64FromText(cursor);
    if (id === undefined) throw notACursor(sort, isBackward);
    return { id, value: undefined };
  }
  const [member, value, digits] = parsed(`${cursor}`);
  const id = int64FromText(digits);
  const isValue = typeof value === 'string' || (value === null && hasNulls);
  if (member !== by || !isValue || id === undefined)
    throw notACursor(sort, isBackward);
  return { id, value };
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

export function notACursor(sort: string, isBackward: boolean) {
  const [parameter, end] = isBackward ? ['before', 'first'] : ['after', 'last'];
  const message = `${parameter} is not a cursor of this list sorted by ${sort}: it must be that of its ${end} item.`;
  return badInput(message);
}
