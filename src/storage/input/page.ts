import { Type } from 'typebox';
import { int64Schema, withDefault } from './check.ts';
import { type Int64, int64 } from './int64.ts';

/** How many items a page may hold. */
export const pageLimit = { min: 1, max: 100, default: 20 } as const;

/** A page of a list, ascending by id. It is read-only, because concurrent requests may share it. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** True when there are items after the last one of this page. */
  readonly hasNext: boolean;
}

const written = Symbol('written');

/** Items that never change, with what was written of them and by which writer. */
interface SharedItems extends ReadonlyArray<unknown> {
  [written]?: Array<{ by: unknown; what: unknown }> | undefined;
}

/** Marks items that several requests share. They must not change from now on. */
export function shared<Item>(items: Item[]): readonly Item[] {
  (items as SharedItems)[written] = undefined;
  return items;
}

/**
 * Writes items; shared ones once for each writer, however many requests share them.
 *
 * @param by identifies the writer. It always writes the same items to the same result.
 * @param context is passed on to `write`
 */
export function writtenOnce<Context, Written>(
  items: readonly unknown[],
  by: unknown,
  context: Context,
  write: (items: readonly unknown[], context: Context) => Written,
): Written {
  if (!(written in items)) return write(items, context);
  const known = items as SharedItems;
  const found = known[written]?.find((one) => one.by === by);
  if (found) return found.what as Written;
  const what = write(items, context);
  if (known[written]) known[written].push({ by, what });
  else known[written] = [{ by, what }];
  return what;
}

/** The part of a list that a client requests: the members that every list has. */
export interface PageQuery {
  /** Maximum number of items, 1 to 100. */
  readonly limit: number;
  /** Only items with a greater id; from the beginning when undefined. */
  readonly after?: Int64 | undefined;
}

/** @param noun for one item, in the descriptions; its plural ends in s */
export function pageQueryMembers(noun: string) {
  return {
    limit: withDefault(
      Type.Integer({
        minimum: pageLimit.min,
        maximum: pageLimit.max,
        description: `Maximum number of ${noun}s to return.`,
      }),
      pageLimit.default,
    ),
    after: Type.Optional(
      int64Schema({ description: `Return only ${noun}s after this one: the id of the last ${noun} seen.` }),
    ),
  };
}

/** The id in a path, as text: an id that is not an int64 is a 404. */
export function idSchema<Name extends string>(name: Name, noun: string) {
  return Type.Object({
    [name]: int64Schema({ description: `Identifier of the ${noun}, up to ${int64.max}.`, examples: [1] }),
  });
}

/** How many items a list may return for this `limit`. One that is not an integer will be rejected. */
export function mostItems(limit: unknown): number {
  const count = limit === undefined || limit === null ? pageLimit.default : Number(limit);
  return Number.isInteger(count) ? Math.min(Math.max(count, 0), pageLimit.max) : pageLimit.max;
}
