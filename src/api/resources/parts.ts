import type { ClassType } from 'type-graphql';
import type { TObject } from 'typebox';
import type { Call } from '../../call.ts';
import type { LiveList } from '../../records/live-list.ts';
import type { Records } from '../../records/records.ts';
import type { Int64 } from '../../validation/int64.ts';

/** What a resource may offer. `follow` needs `list`. */
export type Operation =
  | 'list'
  | 'find'
  | 'create'
  | 'change'
  | 'remove'
  | 'follow';

/** An item of another resource, of which this one has the id. */
export interface Relation {
  /** The member with the id, which is among the filters. */
  by: string;
  /** The GraphQL type of the other resource. */
  to(): ClassType;
  /** The field of the other type that lists the items of this resource. */
  list?: string;
  /**
   * The field of the other type that lists what the items refer to by another
   * relation: many-to-many.
   */
  across?: { list: string; relation: string };
}

type Item = { readonly id: Int64 };
/** The methods of `Records` that the operations call. */
export type Service = Pick<
  Records<Item, never>,
  | 'list'
  | 'count'
  | 'find'
  | 'create'
  | 'change'
  | 'remove'
  | 'lastId'
  | 'onInserted'
>;

/** The names of a resource in both APIs. */
export function namesFor(name: string, path: string) {
  const words = path.slice(1);
  const many = words.replace(/-(\w)/g, (_, next) => next.toUpperCase());
  return {
    path,
    type: name,
    one: name.charAt(0).toLowerCase() + name.slice(1),
    many,
    Many: many.charAt(0).toUpperCase() + many.slice(1),
    noun: name.replace(/(?<!^)[A-Z]/g, ' $&').toLowerCase(),
    nouns: words.replaceAll('-', ' '),
  };
}

/** A declared resource. */
export interface Parts {
  names: ReturnType<typeof namesFor>;
  operations: readonly Operation[];
  relations: Record<string, Relation>;
  transitions: Record<string, Transition>;
  schemas: Record<'item' | 'input' | 'change' | 'query', TObject>;
}

/** What serves it. */
export interface Serving {
  service: Service;
  /** Undefined without `follow`. */
  live: LiveList<Item> | undefined;
  /** The services of its relations. */
  related: Record<string, Pick<Service, 'find'>>;
}

/** An operation on one item without an input. */
export interface Transition<Of = never, Change = object> {
  description: string;
  /** @returns what it sets @throws StoreError when the item refuses it */
  change(item: Of): Change;
}

/** @returns null when there is no item @throws StoreError as `Records.change` */
export async function transit(
  service: Service,
  { change }: Transition,
  id: Int64 | undefined,
  call: Call,
): Promise<Item | null> {
  const item = await service.find(id, call);
  if (!item) return null;
  const { version } = item as Item & { version: number };
  return service.change(
    id,
    { ...change(item as never), version } as never,
    call,
  );
}
