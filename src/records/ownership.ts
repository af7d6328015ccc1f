import type { Call, Caller } from '../call.ts';
import type { Database } from '../database/database.ts';
import { noSuch } from '../database/postgres-errors.ts';
import { StoreError } from '../errors.ts';
import { hasScope, type Scope } from '../scopes.ts';
import type { Lists } from '../validation/list-query.ts';
import type { Table } from './table.ts';

/**
 * The member of an item, a text, with whom it belongs to: the caller that has
 * created it, or the tenant of that caller.
 */
export type Owner<Member extends string> =
  | Member
  | { readonly member: Member; readonly by: 'tenant' };

export function memberOf<Member extends string>(owner: Owner<Member>): Member {
  return typeof owner === 'string' ? owner : owner.member;
}

/** The longest name of an owner, which is in indexes. */
const longestName = 255;

/**
 * Rows that belong to callers, who see and touch no others, unless with the
 * scope `all` of their module.
 */
export class Ownership {
  readonly member: string;
  readonly #isByTenant: boolean;
  readonly #all: Scope;

  /** @param module its name in scopes, if any */
  constructor(owner: Owner<string>, module: string | undefined) {
    this.#isByTenant = typeof owner !== 'string';
    this.member = memberOf(owner);
    this.#all = module ? `${module}:all` : 'all';
  }

  /**
   * Whose items a call sees.
   *
   * @returns undefined for those of all
   * @throws StoreError FORBIDDEN for a token that names no usable owner
   */
  ownerIn(call: Call): string | undefined {
    const caller = callerIn(call);
    return hasScope(caller, this.#all) ? undefined : this.#nameOf(caller);
  }

  /** Whether a call sees an item. */
  sees(item: object, call: Call): boolean {
    const owner = this.ownerIn(call);
    return owner === undefined || this.#read(item) === owner;
  }

  /** Adds the owner to the filters that a collection declares. */
  filter(lists: Lists): Lists {
    const { filters = [], combinations } = lists;
    const own = [[], ...(combinations ?? [])].map((one) => [
      this.member,
      ...one,
    ]);
    return {
      ...lists,
      filters: [this.member, ...filters],
      combinations: combinations && [...combinations, ...own],
    };
  }

  /** Adds the owner to the filters of a list. */
  narrow<Query extends object>(query: Query, call: Call): Query {
    const owner = this.ownerIn(call);
    return owner === undefined ? query : { ...query, [this.member]: owner };
  }

  /** Sets the owner of a new item. Operators may name another one. */
  claim<New extends object>(item: New, call: Call): New {
    const caller = callerIn(call);
    const given = caller.isOperator ? this.#read(item) : undefined;
    return { ...item, [this.member]: given ?? this.#nameOf(caller) };
  }

  #read(item: object): unknown {
    return (item as Record<string, unknown>)[this.member];
  }

  #nameOf({ id, subject, tenant, isOperator }: Caller): string {
    const [claim, name] = this.#isByTenant
      ? ['tenant', tenant]
      : ['subject', subject];
    // What operators add belongs to the configured key.
    if (isOperator) return 'key:0';
    if (name === undefined && !this.#isByTenant) return `key:${id}`;
    const isUsable =
      name !== undefined &&
      name.length <= longestName &&
      name.isWellFormed() &&
      !/^key:|\0|^$/.test(name);
    if (isUsable) return name;
    throw new StoreError(
      'FORBIDDEN',
      `This needs a token with a ${claim}, of at most ${longestName} characters, that does not begin with "key:".`,
    );
  }
}

/** A module that forgets the call must not show the rows of all. */
function callerIn({ caller }: Call): Caller {
  if (caller) return caller;
  throw new Error(
    'These rows belong to callers: pass the call, or Call.ofOperator().',
  );
}

/**
 * @throws StoreError BAD_USER_INPUT for a relation to an item that the call does
 *   not see
 */
export async function assertSeen(
  { owned }: Database,
  { columns }: Table,
  members: object,
  call: Call,
): Promise<void> {
  for (const { member, target } of columns) {
    const id = (members as Record<string, unknown>)[member];
    const sees = target && id != null && owned.get(target);
    if (sees && !(await sees(id, call))) throw noSuch(member);
  }
}
