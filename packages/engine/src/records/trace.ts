import type { EntityMetadata } from '@mikro-orm/core';
import { escapeLiteral as literal } from 'pg';
import { actorIn, type Call, isText, whenCommitted } from '../call.ts';
import { changeTable, type Database } from '../database/database.ts';
import { leastMarked } from '../database/order.ts';
import { reportFault } from '../errors.ts';
import { hasScope } from '../scopes.ts';
import { wholeTime } from '../validation/kinds.ts';
import { modulesOf, type Ownership } from './rows/ownership.ts';
import type { Column, Table } from './rows/table.ts';
import { type Stamped, stampsOf } from './stamps.ts';

/** `true`, or the members that it leaves out. */
export type TraceOption<Member extends string> =
  | true
  | { readonly except: readonly Member[] };

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

/** One lock for a transaction, because PostgreSQL has room for few. */
const lockPosition = `
  select pg_advisory_xact_lock_shared(${sequence}::oid::int, floor::bit(32)::int)::text,
    set_config('changes.floor', floor::text, true)
  from (select coalesce(nullif(current_setting('changes.floor', true), '')::bigint, ${lastDrawn}) as floor) as first`;

const versionBefore = 'coalesce("#version", 1)';

/** SQL for the values of a row in the table, by what has happened. */
const values = {
  created: { version: versionBefore, before: 'null', after: '"#after"' },
  changed: {
    version: '"#next"',
    before: '"#before" - "#same"',
    after: '"#after" - "#same"',
  },
  removed: { version: versionBefore, before: '"#before"', after: 'null' },
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
 * Stores who has written what, in the statement that writes: each row of the
 * table of changes is about a row of it.
 */
export class Trace {
  /** SQL for the members of a row, as JSON. */
  readonly members: string;
  /** SQL for who sees a row. */
  readonly audience: string;
  /** SQL for its owner, where a change may set another one. */
  readonly heir: string | undefined;
  /** SQL for the version of a row. */
  readonly version: string;
  readonly #same: string;

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
      ({ member }) => !left.includes(member),
    );
    this.members = objectOf(columns);
    this.#same = sameOf(columns);
    const { members } = owned;
    const [member, other] = members;
    const owner = member && table.column(member).name;
    if (other || table.columns.some(({ path }) => path))
      reportFault(
        `${name} has a trace, and rows by ${members.join(' and ')}: a trace knows one member, of the row itself.`,
      );
    // A row of nobody is seen by those who see all rows.
    const ofOwner = `${literal(name)} || coalesce(' ' || ${owner}, '')`;
    this.audience = owner ? ofOwner : literal(name);
    const isHandedOver = owner && !owned.kept.includes(member);
    if (isHandedOver) this.heir = `${literal(name)} || ' ' || ${owner}`;
    this.version = table.version?.name ?? '1';
    const audiencesOf = (call: Call) => this.#audiencesOf(call);
    const own = columns.filter(({ isOfModule }) => isOfModule);
    const shown = own.length > 0 ? shownBy(own) : undefined;
    database.traced.set(name, { table: table.name, audiencesOf, shown });
  }

  /** SQL that a statement of creations returns. */
  get returned() {
    const { audience, members, version } = this;
    return `, id as "#id", ${version} as "#version", ${audience} as "#audience", ${members} as "#after"`;
  }

  /**
   * SQL after the parts of a statement that write: it stores their rows.
   *
   * @param rows SQL for these: `#id`, `#audience`, `#version` or `#next`,
   *   `#before` and `#after`
   * @param writers SQL for who has written them (`writerAt`, `writersAt`)
   */
  store(action: keyof typeof values, rows: string, writers: string) {
    const { version, before, after } = values[action];
    const isChange = action === 'changed';
    const same = isChange ? this.#same : '';
    const name = literal(this.traced.name);
    const from = `from "#position", ${rows}${writers}`;
    const forHeir = `
      union all select ${name}, "#id", ${version}, 'created', "#actor", "#tenant", "#request", "#heir", null, "#after"
      ${from} where "#heir" <> "#audience"`;
    return `, "#position" as materialized (${lockPosition}),
    "#traced" as (
      insert into ${changeTable} (collection, item_id, version, action, actor, tenant, request, audience, before, after)
      select ${name}, "#id", ${version}, '${action}', "#actor", "#tenant", "#request", "#audience", ${before}, ${after}
      ${from}${same}${isChange && this.heir ? forHeir : ''})`;
  }

  /** Wakes those who follow the changes. */
  tell() {
    for (const listener of this.database.onTraced) whenCommitted(listener);
  }

  /** @returns undefined for a call that sees all rows of several owners */
  #audiencesOf(call: Call) {
    const { name, owned, module } = this.traced;
    const modules = [module, ...modulesOf(owned.audiences)];
    const isReader = modules
      .filter(Boolean)
      .some((one) => hasScope(call.caller, `${one}:read`));
    if (!isReader) return [];
    if (owned.members.length === 0) return [name];
    try {
      const views = owned.viewsIn(call);
      return views?.map(({ values }) => `${name} ${Object.values(values)[0]}`);
    } catch {
      // It has no usable owner, so it has no rows.
      return [];
    }
  }
}

/** Who writes: the actor, its tenant, and the request. */
export function writerOf(call: Call) {
  const { caller, origin } = call;
  const { tenant } = caller ?? {};
  return [actorIn(call), isText(tenant) ? tenant : null, origin.request];
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
    .map((column) => `${literal(column.member)}, ${jsonOf(column)}`);
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

/** Parses the texts of `jsonOf`. */
function shownBy(columns: readonly Column[]) {
  return (values: Record<string, unknown>) => {
    const shown = { ...values };
    for (const { member, decode } of columns)
      if (decode && shown[member] != null)
        shown[member] = decode(`${shown[member]}`);
    return shown;
  };
}

/** SQL for a value as in an answer, for JSON; its text if SQL cannot know it. */
function jsonOf({ name, type, text, isOfModule }: Column) {
  if (isOfModule) return text;
  if (type === 'timestamptz')
    return `to_char(${wholeTime(name)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return type.startsWith('numeric') ? `${name}::text` : name;
}
