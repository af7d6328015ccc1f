import type { Call, Caller } from '../call.ts';
import type { Database } from '../database/database.ts';
import { noSuch } from '../database/postgres-errors.ts';
import { badInput, StoreError } from '../errors.ts';
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

export function ownerMemberOf<Member extends string>(owner: Owner<Member>) {
  return typeof owner === 'string' ? owner : owner.member;
}

/** The longest name of an owner, which is in indexes. */
const longestName = 255;

/**
 * Rows that belong to callers, who see and touch no others, unless with the
 * scope `all` of their module.
 */
export class Ownership {
  /** undefined for rows that belong to no caller: all see them. */
  readonly member: string | undefined;
  readonly isByTenant: boolean;
  readonly #all: Scope;

  /** @param module its name in scopes, if any */
  constructor(owner: Owner<string> | undefined, module: string | undefined) {
    this.isByTenant = typeof owner === 'object';
    this.member = owner && ownerMemberOf(owner);
    this.#all = module ? `${module}:all` : 'all';
  }

  /**
   * Whose items a call sees.
   *
   * @returns undefined for those of all
   * @throws StoreError FORBIDDEN for a token that names no usable owner
   */
  ownerIn(call: Call) {
    if (!this.member) return undefined;
    const caller = callerIn(call);
    if (hasScope(caller, this.#all)) return undefined;
    return this.#nameOf(caller);
  }

  /** Whether a call sees an item. */
  sees(item: object, call: Call) {
    const owner = this.ownerIn(call);
    return owner === undefined || this.of(item) === owner;
  }

  /** Adds the owner to the filters that a collection declares. */
  filter(lists: Lists) {
    const { member } = this;
    if (!member) return lists;
    const { filters = [], combinations } = lists;
    const own = combinations?.map((one) => [member, ...one]) ?? [];
    return {
      ...lists,
      filters: [member, ...filters],
      combinations: combinations && [...combinations, [member], ...own],
    };
  }

  /** Adds the owner to the filters of a list. */
  narrow<Query extends object>(query: Query, call: Call) {
    const owner = this.ownerIn(call);
    if (owner === undefined) return query;
    return { ...query, [`${this.member}`]: owner };
  }

  /**
   * Sets the owner of a new item. Operators may name another one, and must name
   * a tenant.
   */
  claim<New extends object>(item: New, call: Call) {
    if (!this.member) return item;
    const caller = callerIn(call);
    const given = caller.isOperator ? this.of(item) : undefined;
    if (caller.isOperator && this.isByTenant && !isUsable(given))
      throw badInput(`${this.member} must be the name of a tenant.`);
    return { ...item, [this.member]: given ?? this.#nameOf(caller) };
  }

  /** The owner of an item. */
  of(item: object) {
    return (item as Record<string, unknown>)[`${this.member}`];
  }

  #nameOf({ id, subject, tenant, isOperator }: Caller) {
    // What operators add belongs to the bootstrap key.
    if (isOperator) return 'key:0';
    const claim = this.isByTenant ? 'tenant' : 'subject';
    const name = { tenant, subject }[claim];
    if (name === undefined && claim === 'subject') return `key:${id}`;
    if (isUsable(name)) return name;
    throw new StoreError(
      'FORBIDDEN',
      `This needs a token with a ${claim}, of at most ${longestName} characters, that does not begin with "key:".`,
    );
  }
}

/** False for a name that could be a key, or that two could have. */
function isUsable(name: unknown): name is string {
  return (
    typeof name === 'string' &&
    name.length <= longestName &&
    name.isWellFormed() &&
    !/^key:|\0|^$/.test(name)
  );
}

/** A module that forgets the call must not show the rows of all. */
function callerIn({ caller }: Call) {
  if (caller) return caller;
  throw new Error(
    'These rows belong to callers: pass the call, or Call.ofOperator().',
  );
}

/**
 * @param tenant of the item, if it belongs to one
 * @throws StoreError BAD_USER_INPUT for a relation to an item that the call does
 *   not see, or of another tenant
 */
export async function assertSeen(
  { owned }: Database,
  { columns }: Table,
  members: object,
  call: Call,
  tenant?: unknown,
) {
  for (const { member, target } of columns) {
    const id = (members as Record<string, unknown>)[member];
    const sees = target && id != null && owned.get(target);
    if (sees && !(await sees(id, call, tenant))) throw noSuch(member);
  }
}
