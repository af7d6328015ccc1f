import type { TObject } from 'typebox';
import type { ResourceService } from './definition.ts';

/**
 * Items that an operator can seed, export and import through the module's
 * service.
 */
export interface Collection {
  /** The name in its path: `books`. */
  name: string;
  /** The input of a creation. */
  input: TObject;
  /** An item, as REST returns it. */
  item: TObject;
  /** The query string of its list. */
  query?: TObject;
  /** Whether a live list follows it: its ids become visible in their order. */
  isFollowed?: boolean;
  /** The module's service, or `Records` for a module without rules. */
  service: Pick<ResourceService, 'list' | 'create' | 'ownerMembers' | 'isTree'>;
  /**
   * Creates a sample input; absent when the collection cannot be seeded.
   *
   * @param pick returns a random member
   */
  sample?: ((pick: PickOne) => object | Promise<object>) | undefined;
}

/** Picks one of several, the same for the same seed. */
export type PickOne = <Member>(members: readonly Member[]) => Member;
