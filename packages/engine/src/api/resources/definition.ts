import type { ClassType } from 'type-graphql';
import type { TObject } from 'typebox';
import type { Call } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import type { Followable } from '../../records/live-items.ts';
import type { LiveList } from '../../records/live-list.ts';
import type { Repository } from '../../records/repository.ts';
import { byRule, wholeOf } from '../../records/rows/ownership.ts';
import { retry } from '../../retry.ts';
import type { Int64 } from '../../validation/int64.ts';
import type { Lists } from '../../validation/list-query.ts';
import { removalSchema } from '../../validation/schemas.ts';

type Item = { readonly id: Int64; readonly version?: number };
/** A collection of items, whatever is their input. */
export type ResourceService = Repository<Item, never> & Followable;

/** An operation on one item. */
export interface ItemOperation {
  /** The beginning of its names: `changeVisit`. */
  verb: string;
  description: string;
  method: 'GET' | 'PATCH' | 'DELETE' | 'POST';
  /** What clients say beside the id. */
  input?: TObject;
  /** @returns null when there is no such item */
  run(
    service: ResourceService,
    id: Int64 | undefined,
    call: Call,
    input: never,
  ): Promise<object | true | null>;
}

/** An operation on one item without an input. */
export interface Transition<Of = never, Change = object> {
  description: string;
  /**
   * @returns what it sets
   * @throws StoreError when the item refuses it
   */
  change(item: Of): Change;
}

/** An item of another resource, of which this one has the id. */
export interface Relation {
  /** The member with the id. It is one of the filters. */
  by: string;
  /** The GraphQL type of the other resource. */
  to(): ClassType;
  /** The field of that type that lists the items of this resource. */
  list?: string;
  /**
   * The field of that type that lists what these items refer to by another
   * relation: many-to-many.
   */
  across?: { list: string; relation: string };
}

/** What a resource may offer. `follow` needs `list`. */
export type OperationName =
  | 'list'
  | 'create'
  | 'createMany'
  | 'follow'
  | keyof typeof itemOperations;

/** A declared resource. */
export interface Definition extends Lists {
  names: ReturnType<typeof namesFor>;
  operations: readonly OperationName[];
  follow?: 'all' | undefined;
  relations?: Record<string, Relation>;
  transitions?: Record<string, Transition>;
  /** Modules whose scopes open it, too. */
  audiences: readonly string[];
  schemas: Record<'item' | 'input' | 'several' | 'change' | 'query', TObject>;
}

/** What serves it. */
export interface ResourceServices {
  service: ResourceService;
  /** Undefined without `follow`. */
  live: LiveList<Item> | undefined;
  /** The services of its relations. */
  related: Record<string, Pick<ResourceService, 'find'>>;
}

/** The names of a resource in both APIs. */
export function namesFor(type: string, path: string) {
  const words = path.slice(1);
  const many = words.replace(/-(\w)/g, (_, next) => next.toUpperCase());
  return {
    path,
    type,
    one: type.charAt(0).toLowerCase() + type.slice(1),
    many,
    types: many.charAt(0).toUpperCase() + many.slice(1),
    noun: type.replace(/(?<!^)[A-Z]/g, ' $&').toLowerCase(),
    nouns: words.replaceAll('-', ' '),
  };
}

const itemOperations = {
  find: {
    verb: 'get',
    description: 'Gets one by its id.',
    method: 'GET',
    run: (service, id, call) => service.find(id, call),
  },
  change: {
    verb: 'change',
    description: 'Changes the one that has this version.',
    method: 'PATCH',
    run: (service, id, call, change) => service.change(id, change, call),
  },
  remove: {
    verb: 'remove',
    description: 'Removes one; with a version only if it has this version.',
    method: 'DELETE',
    input: removalSchema,
    run: (service, id, call, removal) => service.remove(id, removal, call),
  },
} satisfies Record<string, ItemOperation>;

/** The operations on one item, with the transitions. */
export function itemOperationsOf({
  operations,
  transitions = {},
  schemas,
}: Definition): ItemOperation[] {
  const change = { ...itemOperations.change, input: schemas.change };
  const all: Record<string, ItemOperation> = { ...itemOperations, change };
  return [
    ...operations.flatMap((name) => all[name] ?? []),
    ...Object.entries(transitions).map(transitionOf),
  ];
}

function transitionOf([verb, transition]: [string, Transition]): ItemOperation {
  return {
    verb,
    description: transition.description,
    method: 'POST',
    run(service, id, call) {
      const transact = async () => {
        const item = await service.find(id, call);
        if (!item) return null;
        service.assertDoes?.(verb, item, call);
        const { version } = item;
        const members = transition.change(wholeOf(item) as never);
        const change = { ...members, version, [byRule]: verb };
        return service.change(id, change as never, call);
      };
      return retry(transact, afterStale);
    },
  };
}

/** Each loses only to another change that is stored. */
const attempts = 10;

/**
 * Another change came first. The client has named no version, so the rule judges
 * again.
 */
function afterStale(error: unknown, attempt: number) {
  const isStale = error instanceof StoreError && 'version' in error.details;
  return isStale && attempt < attempts ? 0 : undefined;
}
