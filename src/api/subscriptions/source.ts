import type { Int64 } from '../../storage/input/int64.ts';

/** What a follower of a list asks for. */
export interface NextQuery {
  /** Only items with a greater id. */
  readonly after: Int64;
  /** The value by which the list is filtered; null for all. */
  readonly filter: unknown;
  /** At most, in bytes; one item may be larger. */
  readonly maxBytes: number;
}

/** The items after a position, ascending by id. */
export interface NextPage<Item> {
  readonly items: readonly Item[];
  /** Up to this id nothing is left out, and nothing smaller will ever come. */
  readonly upTo: Int64;
  /** True when there is more already. */
  readonly hasNext: boolean;
  readonly bytes: number;
}

/** A list whose ids become visible in ascending order: `Records` is one. */
export interface Source<Item> {
  /** The member by which it may be filtered. */
  readonly filteredBy: string | undefined;
  /** May be answered by any server that reads. @throws StoreError SERVICE_UNAVAILABLE */
  next(query: NextQuery): Promise<NextPage<Item>>;
  /** The greatest id where all is written; the least int64 when there is none. @throws StoreError SERVICE_UNAVAILABLE */
  last(): Promise<Int64>;
  /** @param listener is told after each creation by this process */
  onInserted(listener: () => void): void;
}
