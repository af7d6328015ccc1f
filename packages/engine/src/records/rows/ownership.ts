import { isDeepStrictEqual } from 'node:util';
import { type TProperties, Type } from 'typebox';
import type { Call, Caller } from '../../call.ts';
import type { Database } from '../../database/database.ts';
import { noSuch } from '../../database/postgres-errors.ts';
import { badInput, orError, reportFault, StoreError } from '../../errors.ts';
import { anyOf, forbidden, hasScope, type Scope } from '../../scopes.ts';
import { mapMembers } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';
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
export const longestName = 255;

/** What is known of a caller: its `sub`, else `key:<id>`; or its tenant. */
type Identity = 'subject' | 'tenant';

/**
 * Callers who see the same rows of a collection. A caller of several sees the
 * rows of each.
 */
export interface Audience<Member extends string = string> {
  /**
   * A module, whose `read` and `write` they need: `portal`; or a scope like
   * `visits:all`, which adds no rows.
   */
  readonly scope: string;
  /** Texts that equal what is known of the caller. None: all rows. */
  readonly rows: { readonly [Name in Member]?: Identity };
  /** Members that they neither see nor set. */
  readonly hides?: readonly string[];
  /** The only ones that they set. */
  readonly writes?: readonly string[];
  /** `remove`, and transitions; by default all, with `writes` none. */
  readonly does?: readonly string[];
  /** Those that no change of theirs sets. */
  readonly fixed?: readonly string[];
}

/** Whose rows they are: of one member, or by audiences. */
export interface Owned<Member extends string> {
  readonly owner?: Owner<Member> | undefined;
  readonly audiences?: ReadonlyArray<Audience<Member>> | undefined;
  /** What clients set: a default is not given by them. */
  readonly members?: TProperties | undefined;
}

/**
 * The rows that a call sees by an audience, with its rights. Where a function
 * returns several views, undefined stands for all rows. For a caller of no
 * audience `views` and `viewsShowing` return none; functions whose names begin
 * with `require` throw.
 */
export interface View extends Partial<Audience> {
  /** The place of the audience. */
  readonly at: number;
  /** What the members of its rows equal. */
  readonly values: Readonly<Record<string, string>>;
}

type Action = 'read' | 'write';

/** Whose rows of a collection they are: who sees and touches them. */
export class Ownership {
  /** Empty for rows that all see. */
  readonly audiences: readonly Audience[];
  /** The members that rows are chosen by. */
  readonly members: readonly string[];
  /** Those of them that no change sets. */
  readonly kept: readonly string[];
  /** Those that some audience does not see. */
  readonly hidden: readonly string[];
  /** The member that has the tenant. */
  readonly tenant: string | undefined;
  readonly #defaults: Readonly<Record<string, unknown>>;

  /** @param module its name in scopes, if any */
  constructor(
    { owner, audiences = [], members }: Owned<string>,
    private readonly module: string | undefined,
  ) {
    this.audiences = owner ? audiencesOf(owner, module) : audiences;
    const rows = this.audiences.flatMap((one) => Object.entries(one.rows));
    const tenants = rows.filter(([, identity]) => identity === 'tenant');
    this.members = [...new Set(rows.map(([member]) => member))];
    this.tenant = tenants[0]?.[0];
    const kept = owner ? rows : tenants;
    this.kept = kept.map(([member]) => member);
    if (owner && audiences.length > 0)
      reportFault('An owner is an audience: declare one of the two.');
    for (const { scope, rows } of audiences) {
      if (!/^[a-z][\w-]*(?::all)?$/.test(scope))
        reportFault(`${scope} is no scope of an audience: name a module.`);
      // A key with `read` has the scopes of all modules.
      if (this.tenant && isEmpty(rows) && !isOfAll(scope))
        reportFault(
          `The audience ${scope} sees all tenants: its scope must be one of all, such as ${scope}:all.`,
        );
    }
    this.hidden = hiddenBy(audiences);
    this.#defaults = audiences.some(restricts) ? defaultsOf(members) : {};
  }

  /** @param members those of items */
  assertKnown(members: readonly string[]) {
    for (const { scope, hides = [], writes = [], fixed = [] } of this.audiences)
      for (const member of [...hides, ...writes, ...fixed]) {
        const isOwn =
          members.includes(member) && !/^(?:id|version)$/.test(member);
        if (!isOwn)
          reportFault(`The audience ${scope} cannot hide or set ${member}.`);
      }
  }

  /**
   * The rows that a call sees, or may write.
   *
   * @param named members that they must see
   * @throws StoreError FORBIDDEN for a caller of no audience, or one that does
   *   not see these members, or a token that names no usable owner
   */
  requireViews(call: Call, action: Action = 'read', named: string[] = []) {
    if (this.audiences.length === 0) return undefined;
    const caller = callerIn(call);
    if (caller.isOperator) return undefined;
    const all = this.#usableViews(caller, this.audiences, action);
    const views = all.filter((view) => !named.some((one) => hides(view, one)));
    if (views.length === 0) throw notFor('see', named);
    const seesAll = views.some(({ values }) => isEmpty(values));
    return seesAll ? undefined : distinct(views);
  }

  /** Whether a call sees an item, or may write it. */
  sees(item: object, call: Call, action: Action = 'read') {
    const views = this.requireViews(call, action);
    return views?.some((view) => contains(view, item)) ?? true;
  }

  /** Adds what a call sees to the query of a list. */
  narrow<Query extends object>(
    query: Query,
    call: Call,
    further: readonly string[] = [],
  ) {
    const hidden = this.#hiddenAskedBy(query, further);
    const views = this.requireViews(call, 'read', hidden);
    return views ? { ...query, [seenBy]: views } : query;
  }

  /**
   * The rows of which a call sees a member.
   *
   * @throws StoreError FORBIDDEN
   */
  requireViewsShowing(member: string, call: Call) {
    const { audiences, module } = this;
    const { caller } = call;
    const scope = `${module}:read` as const;
    const isOpen = !module || !caller || caller.isOperator;
    const mayRead = isOpen || hasScope(caller, scope);
    if (audiences.length === 0 && !mayRead) throw forbidden(scope, caller);
    return this.requireViews(call, 'read', this.#hiddenAskedBy({}, [member]));
  }

  #hiddenAskedBy(query: object, further: readonly string[]) {
    if (this.hidden.length === 0) return [];
    const asked = [...membersIn(query), ...further];
    return this.hidden.filter((member) => asked.includes(member));
  }

  /** Items without the members that a call does not see. */
  shown<Item extends object>(items: readonly Item[], call: Call) {
    if (this.hidden.length === 0) return items;
    const held = this.views(call);
    return items.map((one) => without(one, this.hiddenFrom(one, call, held)));
  }

  show<Item extends object>(item: Item, call: Call) {
    return without(item, this.hiddenFrom(item, call));
  }

  /**
   * The members of a row that a call does not see: all of them without a view of
   * the row.
   */
  hiddenFrom(row: object, call: Call, held?: View[]) {
    if (this.hidden.length === 0) return [];
    const views = held ?? this.views(call);
    const own = views?.filter((view) => contains(view, row));
    return this.hidden.filter((one) => own?.every((view) => hides(view, one)));
  }

  /** The rows of which a call sees a member that some audience does not. */
  viewsShowing(member: string, call: Call) {
    if (!this.hidden.includes(member)) return undefined;
    const views = orError(() => this.requireViews(call, 'read', [member]));
    return views instanceof Error ? [] : views;
  }

  /** By each audience of a call. */
  views(call: Call, action: Action = 'read') {
    if (this.audiences.length === 0) return undefined;
    const caller = callerIn(call);
    if (caller.isOperator) return undefined;
    const views = orError(() =>
      this.#usableViews(caller, this.audiences, action),
    );
    return views instanceof Error ? [] : views;
  }

  /** Whether a write depends on who may do what. */
  restricts(call: Call) {
    return this.views(call, 'write')?.some(restricts) ?? false;
  }

  /**
   * @param deed a removal or a transition
   * @throws StoreError FORBIDDEN when no audience of a row does it
   */
  assertDoes(deed: string, row: object, call: Call) {
    const views = this.#writingTo(row, call);
    if (views?.every((view) => !mayDo(view, deed))) throw notFor(deed, ['it']);
  }

  #writingTo(row: object, call: Call) {
    const held = this.views(call, 'write');
    return held?.filter((view) => contains(view, row));
  }

  /**
   * @throws StoreError FORBIDDEN for a transition that no audience of a row
   *   does, or members that none sets
   */
  assertMakes(change: object, row: object, call: Call) {
    const { [byRule]: verb } = change as { [byRule]?: string };
    if (verb) return this.assertDoes(verb, row, call);
    const given = Object.entries(change).filter(([, one]) => one !== undefined);
    const views = this.#writingTo(row, call);
    const names = given.map(([name]) => name);
    const refused = names.filter((member) =>
      views?.every(({ fixed = [], ...view }) => {
        return fixed.includes(member) || !maySet(view, member);
      }),
    );
    if (refused.length > 0) throw notFor('set', refused);
  }

  /**
   * Puts a new item among the rows that its caller may write: by the first
   * audience that it fits, and that sets what is given. Operators may name
   * another owner, and must name a tenant.
   *
   * @param related what the database copies to it from other rows
   */
  claim<New extends object>(item: New, call: Call, related: object = {}): New {
    if (this.audiences.length === 0) return item;
    const caller = callerIn(call);
    if (caller.isOperator) return this.#claimedByOperator(item);
    const open = this.audiences.filter(({ scope }) => !isOfAll(scope));
    const views = this.#usableViews(caller, open, 'write');
    const own = fitting(views, item, null);
    const all = own.filter((view) => !contradicted(view, related));
    // Otherwise it is refused, unless it is stored.
    const fits = all.length > 0 ? all : own;
    const refused = fits.map((view) => this.#refusedBy(view, item));
    const place = refused.findIndex(({ length }) => length === 0);
    if (place === -1) throw notFor('set', refused[0] ?? []);
    const { values } = fits[place] as View;
    const isOfNone = this.tenant && !values[this.tenant];
    if (isOfNone) throw unnamed('tenant');
    return { ...item, ...values };
  }

  #refusedBy(view: View, item: object) {
    if (!restricts(view)) return [];
    if (view.writes?.length === 0) return ['any member'];
    const isGiven = ([name, value]: [string, unknown]) =>
      value != null && !isDeepStrictEqual(value, this.#defaults[name]);
    const given = Object.entries(item).filter(isGiven);
    return given
      .map(([name]) => name)
      .filter((name) => !(name in view.values) && !maySet(view, name));
  }

  #claimedByOperator<New extends object>(item: New): New {
    const tenant = this.tenant;
    if (tenant && !isUsable(memberIn(item, tenant)))
      throw badInput(`${tenant} must be the name of a tenant.`);
    // What operators add belongs to the bootstrap key.
    const own = this.kept.map((member) => [
      member,
      memberIn(item, member) ?? 'key:0',
    ]);
    return { ...item, ...Object.fromEntries(own) };
  }

  /**
   * The rows that a call may change so: they stay among those that it may
   * write.
   *
   * @param row one that the call may write; by default any
   * @returns undefined for all rows
   * @throws StoreError BAD_USER_INPUT when no row would
   */
  changeable(change: object, call: Call, row?: object) {
    const views = this.requireViews(call, 'write');
    const own = views?.filter((view) => !row || contains(view, row));
    return own && fitting(own, change);
  }

  /** The rows of the same callers as this one. */
  viewOf(row: object): View {
    const own = this.members.map((member) => [member, memberIn(row, member)]);
    const named = own.filter(([, name]) => name !== null);
    return { at: 0, values: Object.fromEntries(named) };
  }

  /** The tenant of an item; undefined where rows belong to none. */
  tenantOf(item: object) {
    return this.tenant && memberIn(item, this.tenant);
  }

  #usableViews(
    caller: Caller,
    audiences: readonly Audience[],
    action: Action,
  ): View[] {
    const held = audiences.filter(({ scope }) => holds(caller, scope, action));
    if (held.length === 0) {
      const scopes = audiences.map(({ scope }) => scopeFor(scope, action));
      throw forbidden(anyOf(scopes), caller);
    }
    const views = held.map((one) =>
      orError(() => ({
        ...one,
        at: this.audiences.indexOf(one),
        values: mapMembers(one.rows, (identity) => nameOf(caller, identity)),
      })),
    );
    const usable = views.flatMap((one) => (one instanceof Error ? [] : one));
    if (usable.length === 0) throw views[0];
    return usable;
  }
}

/** The verb of a transition, in the change that its rule makes. */
export const byRule = Symbol('byRule');

/** The members that some audience does not see. */
export function hiddenBy(audiences: readonly Audience[] = []) {
  return [...new Set(audiences.flatMap(({ hides = [] }) => hides))];
}

const restricts = ({ hides, writes, fixed, does }: Partial<Audience>) =>
  Boolean(hides ?? writes ?? fixed ?? does);

const mayDo = ({ does, writes }: Partial<Audience>, deed: string) =>
  does?.includes(deed) ?? !writes;

const hides = (view: Partial<Audience>, member: string) =>
  view.hides?.includes(member) ?? false;

const maySet = (view: Partial<Audience>, member: string) =>
  (view.writes?.includes(member) ?? true) && !hides(view, member);

function defaultsOf(members: TProperties = {}): Record<string, unknown> {
  return validator(Type.Partial(Type.Object(members)))({});
}

/** The items of those that lack members. */
const wholes = new WeakMap<object, object>();

/** An item with the members that its caller does not see. */
export const wholeOf = <Item extends object>(item: Item) =>
  (wholes.get(item) ?? item) as Item;

export function without<Item extends object>(
  item: Item,
  hidden: readonly string[],
) {
  if (hidden.length === 0) return item;
  const members = Object.entries(item).filter(
    ([name]) => !hidden.includes(name),
  );
  const shown = Object.fromEntries(members) as Item;
  wholes.set(shown, item);
  return shown;
}

const ofFilter = /_(?:in|is_null|gte|gt|lte|lt|prefix|desc)$/;

/**
 * The members that a list may be filtered and sorted by: a name like `check_in`
 * may be a member, or a filter by one.
 */
export function membersIn({ sort, ...filters }: { sort?: unknown }) {
  const given = Object.entries(filters).filter(([, value]) => value != null);
  const names = [...given.map(([name]) => name), `${sort}`];
  return names.flatMap((name) => [name, name.replace(ofFilter, '')]);
}

function notFor(deed: string, members: readonly string[]) {
  const names = members.join(', ');
  return new StoreError('FORBIDDEN', `This caller may not ${deed} ${names}.`);
}

/** The member of a list's query with what its call sees. */
export const seenBy = '#seen';

/** An owner's rows are those of one audience; `all` opens them. */
function audiencesOf(owner: Owner<string>, module?: string): Audience[] {
  const by = typeof owner === 'string' ? 'subject' : owner.by;
  const all = module ? `${module}:all` : 'all';
  return [
    { scope: '', rows: { [ownerMemberOf(owner)]: by } },
    { scope: all, rows: {} },
  ];
}

/** Who uses the routes of a collection: its module, and further ones. */
export function modulesOf(audiences: readonly Audience[] = []) {
  const scopes = audiences.map(({ scope }) => scope);
  return scopes.filter((scope) => !isOfAll(scope));
}

const isOfAll = (scope: string) => /(?:^|:)all$/.test(scope);

function scopeFor(scope: string, action: Action) {
  return (isOfAll(scope) ? scope : `${scope}:${action}`) as Scope;
}

/** The rows of an owner are open by the scope of their module alone. */
function holds(caller: Caller, scope: string, action: Action) {
  return scope === '' || hasScope(caller, scopeFor(scope, action));
}

/** @throws StoreError FORBIDDEN for a caller without a usable one */
function nameOf(
  { id, subject, tenant }: Caller,
  identity: Identity | undefined = 'subject',
) {
  const name = { tenant, subject }[identity];
  if (name === undefined && identity === 'subject') return `key:${id}`;
  if (isUsable(name)) return name;
  throw unnamed(identity);
}

function unnamed(identity: Identity) {
  return new StoreError(
    'FORBIDDEN',
    `This needs a token with a ${identity}, of at most ${longestName} characters, that does not begin with "key:".`,
  );
}

const isEmpty = (values: object) => Object.keys(values).length === 0;

/** Without rows that another view has, too. */
function distinct(views: View[]) {
  return views.reduce<View[]>((kept, view) => {
    if (kept.some((one) => contains(one, view.values))) return kept;
    return [...kept.filter((one) => !contains(view, one.values)), view];
  }, []);
}

/** SQL for the rows of some views. */
export function seenRows(
  views: readonly View[],
  table: Table,
  parameter: (value: string) => string,
) {
  const rows = views.map(({ values }) => {
    const own = Object.entries(values).map(
      ([member, value]) => `${table.column(member).name} = ${parameter(value)}`,
    );
    return own.join(' and ');
  });
  return rows.join(' or ');
}

function contains({ values }: View, item: object) {
  return Object.entries(values).every(
    ([member, value]) => memberIn(item, member) === value,
  );
}

/**
 * Those that have the given members, or say nothing of them.
 *
 * @param absent of a new item, a null says nothing
 * @throws StoreError BAD_USER_INPUT without one
 */
function fitting(views: View[], given: object, absent?: null) {
  const members = views.map((view) => contradicted(view, given, absent));
  const fits = views.filter((_, at) => members[at] === undefined);
  if (fits.length > 0) return fits;
  throw badInput(`${members[0]} must be that of the caller.`);
}

/** The member of its rows that is given as another one. */
export function contradicted({ values }: View, given: object, absent?: null) {
  return Object.keys(values).find((member) => {
    const other = memberIn(given, member);
    return other !== undefined && other !== absent && other !== values[member];
  });
}

export function memberIn(item: object, member: string) {
  return (item as Record<string, unknown>)[member];
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
    const id = memberIn(members, member);
    const sees = target && id != null && owned.get(target);
    if (sees && !(await sees(id, call, tenant))) throw noSuch(member);
  }
}
