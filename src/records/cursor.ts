import { StoreError } from '../errors.ts';
import { type Int64, int64FromText } from '../validation/int64.ts';

/** A place in a list: that of the item with this id. */
export interface Place {
  readonly id: Int64;
  /** The item's value as PostgreSQL's text, in an order by that member. */
  readonly value?: string;
}

/** The member that a list is sorted by. */
function memberOf(sort: string): string {
  return sort.replace(/_desc$/, '');
}

/** The cursor of a place in an order by a member other than the id. */
export function cursorOf(sort: string, value: string, id: Int64): string {
  const place = JSON.stringify([memberOf(sort), value, `${id}`]);
  return Buffer.from(place).toString('base64url');
}

/**
 * @param cursor the id, in an order by ids
 * @throws StoreError BAD_USER_INPUT for a cursor of another order
 */
export function placeOf(cursor: Int64 | string, sort: string): Place {
  const by = memberOf(sort);
  const isId = by === 'id';
  if (isId && typeof cursor !== 'string') return { id: cursor };
  const [member, value, digits] = isId ? [by, '', cursor] : parsed(`${cursor}`);
  const id = int64FromText(digits);
  if (member !== by || typeof value !== 'string' || id === undefined)
    throw notACursor(sort);
  return isId ? { id } : { id, value };
}

function parsed(cursor: string): unknown[] {
  try {
    const place = JSON.parse(`${Buffer.from(cursor, 'base64url')}`);
    return Array.isArray(place) ? place : [];
  } catch {
    return [];
  }
}

export function notACursor(sort: string): StoreError {
  const message = `after is not a cursor of this list sorted by ${sort}: it must be that of its last item.`;
  return new StoreError('BAD_USER_INPUT', message);
}
