import { hash } from 'node:crypto';
import type { EntityMetadata } from '@mikro-orm/core';
import { escapeLiteral as literal } from 'pg';
import { actorIn, type Call, whenCommitted } from '../call.ts';
import {
  type ChangeReader,
  changeTable,
  type Database,
  type TracedCollection,
} from '../database/database.ts';
import { leastMarked } from '../database/order.ts';
import { reportFault } from '../errors.ts';
import { hasScope } from '../scopes.ts';
import { assertPageFits, pageLimit } from '../validation/page-size.ts';
import {
  contradicted,
  modulesOf,
  type Ownership,
  type View,
  wholeOf,
} from './rows/ownership.ts';
import type { Column, Table } from './rows/table.ts';
import { type Stamped, stampsOf } from './stamps.ts';

/** `true`, or the members that it leaves out, unless rows are chosen by them. */
export type TraceOption<Member extends string> =
  | true
  | { readonly except: readonly Member[] };

/** The event that a change is: `toys.added`. */
export function eventIn({ collection, action }: Record<string, unknown>) {
  return `${collection}.${action === 'created' ? 'added' : action}`;
}

const sequence = `'${changeTable}_id_seq'::regclass`;
const lastDrawn = `coalesce(pg_sequence_last_value(${sequence}), 0)`;

/**
 * The last position up to which all rows are visible. A transaction holds a
 * lock from before it draws its first position until its rows are visible. The
 * lock names the position before that, so those beyond the least lock may be
 * under way. No writer waits for another one.
 */
export const visibleChanges = {
  name: `horizon_${changeTable}`,
  text: `with last as materialized (select ${lastDrawn} as id)
    select ${leastMarked(sequence)}::text from last`,
};

const keptChanges = {
  name: 'kept_changes',
  text: `select least((select min(id) - 1 from ${changeTable}), last::bigint)::text, last
    from (${visibleChanges.text}) as visible (last)`,
};

/** The position before the oldest change, and the last visible one. */
export async function keptIn(
  database: Pick<Database, 'rows' | 'inTurn'>,
  call: Call,
) {
  const queue = { collection: changeTable, operation: 'kept' };
  const read = () => database.rows<[string, string]>(keptChanges, []);
  const [[before, last] = []] = await database.inTurn(call, queue, read);
  return { before: BigInt(before ?? 0), last: BigInt(last ?? 0) };
}

/** One lock for a transaction, because PostgreSQL has room for few. */
const lockPosition = `
  select pg_advisory_xact_lock_shared(${sequence}::oid::int, floor::bit(32)::int)::text,
    set_config('changes.floor', floor::text, true)
  from (select coalesce(nullif(current_setting('changes.floor', true), '')::bigint, ${lastDrawn}) as floor) as first`;

/** SQL for an item in the table, by what has happened to it. */
const itemsBy = {
  created: { before: 'null', after: '"#after"' },
  changed: { before: '"#before" - "#same"', after: '"#after" - "#same"' },
  removed: { before: '"#before"', after: 'null' },
};

/** A collection that leaves a trace. */
interface Traced {
  /** Its name in its path. */
  readonly name: string;
  readonly table: Table;
  readonly owned: Ownership;
  /** The name of its module in scopes. */
  readonly module: string | undefined;
  readonly option: TraceOption<string>;
  readonly stamped: Stamped;
}

/**
 * Stores who has written what, in the statement that writes
 * (`change-statements.ts` prints one): each row of the table of changes is about
 * a row of it.
 */
export class Trace implements TracedCollection {
  readonly table: string;
  readonly shown;
  // SQL for further columns of a row. `#audience` and `#reader` see it.
  /** Of a new row. */
  readonly created: string;
  /** Of a row before it is changed or removed. */
  readonly before: string;
  /** Of a row after a change. */
  readonly #after: string;
  /** To whom a change hands it over; empty where it hands none over. */
  readonly #heirs: string;
  readonly #same: string;
  /** The members by which `#audience` is named. */
  readonly #byMembers: string;

  /** @param metadata of the entity */
  constructor(
    private readonly database: Database,
    private readonly traced: Traced,
    { props }: EntityMetadata,
  ) {
    const { name, table, owned, option, stamped } = traced;
    const described = [...database.orm.getMetadata()];
    if (!described.some(({ tableName }) => tableName === changeTable))
      reportFault(
        `${name} has a trace, which needs the feature changes, and keepsChanges in its module.`,
      );
    for (const { name: member, deleteRule = '' } of props)
      if (['cascade', 'set null'].includes(deleteRule))
        reportFault(
          `${name} has a trace, which would lack what ${member} does: give it the deleteRule 'no action'.`,
        );
    const except = option === true ? [] : option.except;
    const stamps = Object.keys(stampsOf(stamped));
    const left = ['id', table.version?.member, ...except, ...stamps];
    const columns = table.columns.filter(
      ({ member }) => owned.members.includes(member) || !left.includes(member),
    );
    const texts = columns.map(({ member, longest }) => {
      return { name: member, maxLength: longest };
    });
    // Each has its item before and after.
    assertPageFits(texts, 2 * pageLimit.max, `A page of changes of ${name}`);
    this.#same = sameOf(columns);
    const choices = choicesIn(owned);
    const isThrough = table.columns.some(({ path }) => path);
    if (choices.length > 2 || isThrough)
      reportFault(
        `${name} has a trace, and rows by ${choices.join('; ')}: a trace knows two of these, of the row itself.`,
      );
    const [audience = 'null', reader = 'null'] = choices.map((members) =>
      nameIn(name, members, table),
    );
    // A row of nobody is seen by those who see all rows.
    const ofAll = `coalesce(${audience}, ${literal(name)})`;
    const readers = `${ofAll} as "#audience", ${reader}::text as "#reader"`;
    const isKept = owned.members.every((one) => owned.kept.includes(one));
    this.#heirs = isKept
      ? ''
      : `, nullif(${audience}, "#audience") as "#heir", nullif(${reader}, "#reader") as "#next_reader"`;
    const members = objectOf(columns);
    const version = table.version?.name ?? '1';
    this.created = `, id as "#id", ${version} as "#version", ${readers}, ${members} as "#after"`;
    this.before = `, ${readers}, ${members} as "#before"`;
    this.#after = `${version} as "#next", ${members} as "#after"${this.#heirs}`;
    this.#byMembers = `${choices[0]}`;
    const own = columns.filter(({ json }) => !json);
    this.shown = own.length > 0 ? shownBy(own) : undefined;
    this.table = table.name;
    database.traced.set(name, this);
  }

  /**
   * SQL after the parts of a statement that write: it stores their rows.
   *
   * @param rows SQL for these, with the columns `created` or `before`
   * @param writers SQL for who has written them (`writerAt`, `writersAt`)
   */
  store(action: keyof typeof itemsBy, rows: string, writers: string) {
    const { before, after } = itemsBy[action];
    const isChange = action === 'changed';
    const version = isChange ? '"#next"' : 'coalesce("#version", 1)';
    const same = isChange ? this.#same : '';
    const name = literal(this.traced.name);
    const item = `${name}, "#id", ${version}`;
    const writer = '"#actor", "#tenant", "#request"';
    const changed = `, "#changed" as materialized (select *, ${this.#after} from ${rows})`;
    const from = `from "#position", ${isChange ? '"#changed"' : rows}${writers}`;
    // It is created for an heir; `eventFor` tells it by its version.
    const forHeir = `
      union all select ${item}, 'created', ${writer}, coalesce("#heir", ${name}), "#next_reader", null, "#after"
      ${from} where coalesce("#heir", "#next_reader") is not null`;
    return `${isChange ? changed : ''}, "#position" as materialized (${lockPosition}),
    "#traced" as (
      insert into ${changeTable} (collection, item_id, version, action, actor, tenant, request, audience, reader, before, after)
      select ${item}, '${action}', ${writer}, "#audience", "#reader", ${before}, ${after}
      ${from}${same}${isChange && this.#heirs ? forHeir : ''})`;
  }

  /** Wakes those who follow the changes. */
  tell() {
    for (const listener of this.database.onTraced) whenCommitted(listener);
  }

  readersOf(call: Call, named: string[]): ChangeReader[] | undefined {
    const { name, owned, module } = this.traced;
    const modules = [module, ...modulesOf(owned.audiences)];
    const isReader = modules
      .filter(Boolean)
      .some((one) => hasScope(call.caller, `${one}:read`));
    if (!isReader) return [];
    try {
      const views = owned.requireViews(call, 'read', named);
      if (owned.members.length === 0) return [{ by: 'audience', name }];
      return views?.map((view) => this.#readerBy(view));
    } catch {
      // It has no usable owner, or does not see these members.
      return [];
    }
  }

  #readerBy({ values }: View): ChangeReader {
    const members = Object.keys(values).toSorted();
    const own = members.map((member) => `${values[member]}`);
    const bytes = own.map((value) => hash('sha256', value, 'buffer'));
    const hashed = hash('sha256', Buffer.concat(bytes), 'base64');
    const name = `${this.traced.name} ${own.length > 1 ? hashed : own}`;
    const isAudience = `${members}` === this.#byMembers;
    return { by: isAudience ? 'audience' : 'reader', name };
  }

  hiddenFrom(change: Record<string, unknown>, call: Call) {
    const own = this.#viewsOf(change, call);
    const row = Object.assign({}, ...own.map(({ values }) => values));
    return this.traced.owned.hiddenFrom(row, call);
  }

  eventFor(change: Record<string, unknown>, call: Call) {
    const { action, version } = change;
    const isForAll = !this.traced.owned.requireViews(call);
    // For an heir: those who see all rows have it as a change.
    const isRepeated = isForAll && Number(version) > 1;
    if (action === 'created') return isRepeated ? undefined : 'added';
    const after = wholeOf((change.after ?? {}) as object);
    const views = this.#viewsOf(change, call);
    const stays = views.some((view) => !contradicted(view, after));
    return isForAll || stays ? `${action}` : 'removed';
  }

  /** The views of a call that had the row before. */
  #viewsOf(change: Record<string, unknown>, call: Call) {
    const views = this.traced.owned.views(call) ?? [];
    return views.filter((view) => {
      const { by, name } = this.#readerBy(view);
      return change[by] === name;
    });
  }
}

/** The members that audiences choose rows by, the fewest first. */
function choicesIn({ audiences }: Ownership) {
  const all = audiences.map(({ rows }) => Object.keys(rows).toSorted());
  const distinct = new Map(all.map((members) => [`${members}`, members]));
  distinct.delete('');
  return [...distinct.values()].toSorted((a, b) => a.length - b.length);
}

/**
 * SQL for the name of those who see a row by some members; null without one.
 * Several are hashed: no others have this name, and indexes are small.
 */
function nameIn(name: string, members: string[], table: Table) {
  const columns = members.map((member) => table.column(member).name);
  const bytes = columns.map((one) => `sha256(convert_to(${one}, 'UTF8'))`);
  const hashed = `encode(sha256(${bytes.join(' || ')}), 'base64')`;
  return `${literal(name)} || ' ' || ${columns.length > 1 ? hashed : columns}`;
}

/** Who writes. */
export function writerOf(call: Call) {
  const { caller, request } = call.origin;
  const actorTenant = caller?.tenant ?? null;
  return { actor: actorIn(call), actorTenant, request };
}

/** SQL for the values of `writerOf`, the first one in a parameter. */
export function writerAt(at: number) {
  return `, (values ($${at}::text, $${at + 1}::text, $${at + 2}::text)) as writer ("#actor", "#tenant", "#request")`;
}

/** The same of several rows, by `#place`, in their order. */
export function writersAt(at: number) {
  return ` join unnest($${at}::text[], $${at + 1}::text[], $${at + 2}::text[]) with ordinality
        as writer ("#actor", "#tenant", "#request", "#place") using ("#place") order by "#id"`;
}

/** A function takes 100 arguments. */
const mostMembers = 50;

/** SQL for a JSON object: quicker than `to_jsonb` of a row. */
function objectOf(columns: readonly Column[]): string {
  const own = columns
    .slice(0, mostMembers)
    .map(({ member, json, text }) => `${literal(member)}, ${json ?? text}`);
  const object = `jsonb_build_object(${own.join(', ')})`;
  const others = columns.slice(mostMembers);
  return others.length > 0 ? `${object} || ${objectOf(others)}` : object;
}

/** SQL for the names of the members that a change leaves as they are. */
function sameOf(columns: readonly Column[]) {
  const names = columns.map(({ member }) => {
    const name = literal(member);
    return `case when "#before" -> ${name} = "#after" -> ${name} then ${name} end`;
  });
  // Without `offset`, PostgreSQL would compare them twice.
  return `, lateral (select array[${names.join(', ')}]::text[] as "#same" offset 0) as compared`;
}

/** Parses the texts of values whose JSON SQL does not know. */
function shownBy(columns: readonly Column[]) {
  return (values: Record<string, unknown>) => {
    const shown = { ...values };
    for (const { member, decode } of columns)
      if (decode && shown[member] != null)
        shown[member] = decode(`${shown[member]}`);
    return shown;
  };
}
