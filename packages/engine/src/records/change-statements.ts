/**
 * Makes the statements of changes and removals: each locks its row (`#found`),
 * writes it if the version is that which was read, and answers with the version
 * before, then with the columns after. A change of a sign (a module of the
 * tests), with what it sets as JSON in $2:
 *
 *   with "#found" as materialized (
 *     select id as "#id", "version" as "#version"
 *     from "sign" where id = $1 for update
 *   ), written as (
 *     update "sign"
 *     set "name" = case when $2::jsonb ? 'name'
 *         then ($2::jsonb ->> 'name')::text else "name" end,
 *       "version" = "#version" % 2147483647 + 1
 *     from "#found" where id = $1 and id = "#id" and "#version" = $3
 *     returning "id", "name", "version"
 *   )
 *   select "#version"::text, "id"::text, "name"::text, "version"::text
 *   from "#found" left join written on true
 *
 * A removal of a flyer, whose tenant is its shop:
 *
 *   with "#found" as materialized (
 *     select id as "#id", "version" as "#version"
 *     from "flyer" where id = $1 and "shop" = $2
 *       and ($3::jsonb[] is null
 *         or jsonb_build_object('shop', "shop") @> any($3::jsonb[]))
 *     for update
 *   ), written as (
 *     delete from "flyer"
 *     using "#found" where id = $1 and "shop" = $2 and id = "#id"
 *       and ($4::int is null or "#version" = $4)
 *     returning id::text
 *   )
 *   select "#version"::text, id from "#found" left join written on true
 *
 * A change of a slip, which leaves a trace:
 *
 *   with "#found" as materialized (
 *     select id as "#id", "version" as "#version",
 *       coalesce(null, 'slips') as "#audience", null::text as "#reader",
 *       jsonb_build_object('name', "name") as "#before"
 *     from "slip" where id = $1 for update
 *   ), written as (
 *     update "slip"
 *     set "name" = case when $2::jsonb ? 'name'
 *         then ($2::jsonb ->> 'name')::text else "name" end,
 *       "version" = "#version" % 2147483647 + 1
 *     from "#found" where id = $1 and id = "#id" and "#version" = $3
 *     returning "id", "name", "version"
 *   ), "#changed" as materialized (
 *     select *, "version" as "#next",
 *       jsonb_build_object('name', "name") as "#after"
 *     from "#found", written
 *   ), "#position" as materialized (
 *     select pg_advisory_xact_lock_shared('change_id_seq'::regclass::oid::int,
 *         floor::bit(32)::int)::text,
 *       set_config('changes.floor', floor::text, true)
 *     from (
 *       select coalesce(
 *         nullif(current_setting('changes.floor', true), '')::bigint,
 *         coalesce(pg_sequence_last_value('change_id_seq'::regclass), 0)
 *       ) as floor
 *     ) as first
 *   ), "#traced" as (
 *     insert into change (collection, item_id, version, action,
 *       actor, tenant, request, audience, reader, before, after)
 *     select 'slips', "#id", "#next", 'changed',
 *       "#actor", "#tenant", "#request", "#audience", "#reader",
 *       "#before" - "#same", "#after" - "#same"
 *     from "#position", "#changed",
 *       (values ($4::text, $5::text, $6::text))
 *         as writer ("#actor", "#tenant", "#request"),
 *       lateral (
 *         select array[
 *           case when "#before" -> 'name' = "#after" -> 'name' then 'name' end
 *         ]::text[] as "#same" offset 0
 *       ) as compared
 *   )
 *   select "#version"::text, "id"::text, "name"::text, "version"::text
 *   from "#found" left join written on true
 *
 * Citus refuses a `returning` with functions that are not immutable.
 */

import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import { unlessOvertaken } from '../database/through.ts';
import type { Int64 } from '../validation/int64.ts';
import { wholeTime } from '../validation/kinds.ts';
import type { Ownership } from './rows/ownership.ts';
import type { Table } from './rows/table.ts';
import type { Stamped } from './stamps.ts';
import { type Trace, writerAt, type writerOf } from './trace.ts';

/** A change or removal of one row, with the parameters of its statement. */
export interface Write extends Partial<ReturnType<typeof writerOf>> {
  readonly operation: 'change' | 'remove';
  readonly id: Int64 | undefined;
  /** That the client has read. */
  readonly version: number | undefined;
  /** The members to set, as JSON. */
  readonly changes?: string;
  /** Of all rows that the call may write. */
  readonly tenant?: string | undefined;
  /** The members of these rows by audience, as JSON; none for all rows. */
  readonly views?: string[] | undefined;
}

/** Whose rows are written. */
export interface Collection {
  readonly table: Table;
  readonly owned: Ownership;
  readonly stamped: Stamped;
  readonly trace: Trace | undefined;
}

/** What a statement is made of. */
interface Parts extends Collection {
  readonly isOfTenant: boolean;
  /** Its parameters, in their order. */
  readonly slots: Array<keyof Write>;
  /** SQL for one. */
  given(slot: keyof Write): string;
}

export type Operation = Write['operation'];

/** @param isOfTenant whether it names the tenant of the row */
export function statementOf(
  operation: Operation,
  collection: Collection,
  isOfTenant: boolean,
) {
  const slots: Array<keyof Write> = [];
  // They are numbered as the statement names them.
  const given = (slot: keyof Write) => {
    if (!slots.includes(slot)) slots.push(slot);
    return `$${slots.indexOf(slot) + 1}`;
  };
  const suffix = isOfTenant ? '_of_tenant' : '';
  const name = `${operation}_${collection.table.name}${suffix}`;
  const text = textOf[operation]({ ...collection, isOfTenant, slots, given });
  return { statement: { name, text, isWrite: true }, slots };
}

const textOf = {
  /** Sets the members that are given. Triggers set those of other rows. */
  change(parts: Parts) {
    const { table, given } = parts;
    const { columns } = table;
    const returned = columns.map(({ name }) => name);
    const answer = columns.map(({ text }) => text);
    return `with ${found(parts)},
      written as (
        update ${quoted(table.name)} set ${settings(parts)}
        from "#found" where ${row(parts)} and id = "#id" and "#version" = ${given('version')}
        returning ${returned.join(', ')})${traced('changed', parts)}
      select "#version"::text, ${answer.join(', ')}
      from "#found" left join written on true${unlessOthers(parts)}`;
  },

  remove(parts: Parts) {
    const { table, given } = parts;
    return `with ${found(parts)},
      written as (
        delete from ${quoted(table.name)}
        using "#found" where ${row(parts)} and id = "#id"
          and (${given('version')}::int is null or "#version" = ${given('version')})
        returning id::text)${traced('removed', parts)}
      select "#version"::text, id
      from "#found" left join written on true`;
  },
};

/**
 * The row, if the call may write it. The lock makes the version the current
 * one, not that of the statement's snapshot. No column has the names of
 * `#found`, so that `returning` is unambiguous.
 */
function found(parts: Parts) {
  const { table, trace } = parts;
  const version = table.version?.name ?? 'null::int';
  return `"#found" as materialized (
        select id as "#id", ${version} as "#version"${trace?.before ?? ''}
        from ${quoted(table.name)} where ${row(parts)}${seen(parts)} for update)`;
}

/** Citus locks a row of a tenant by the equation with the tenant. */
function row({ table, owned, isOfTenant, given }: Parts) {
  const ofId = `id = ${given('id')}`;
  if (!isOfTenant) return ofId;
  const { name } = table.column(`${owned.tenant}`);
  return `${ofId} and ${name} = ${given('tenant')}`;
}

function seen({ table, owned, given }: Parts) {
  if (owned.members.length === 0) return '';
  const members = owned.members.map(
    (member) => `${literal(member)}, ${table.column(member).name}`,
  );
  const views = `${given('views')}::jsonb[]`;
  return ` and (${views} is null or jsonb_build_object(${members}) @> any(${views}))`;
}

function settings({ table, owned, stamped, given }: Parts) {
  const { columns, version } = table;
  const kept = ['id', version?.member, ...owned.kept];
  const now = stamped.times ? 'changedAt' : undefined;
  const changes = columns
    .filter(({ member, path }) => !path && !kept.includes(member))
    .map(({ member, name, type }) => {
      if (member === now) return `${name} = ${wholeTime('clock_timestamp()')}`;
      const changes = `${given('changes')}::jsonb`;
      const value = `(${changes} ->> ${literal(member)})::${type}`;
      return `${name} = case when ${changes} ? ${literal(member)} then ${value} else ${name} end`;
    });
  // Version 1 follows the greatest one.
  const next = `${version?.name} = "#version" % 2147483647 + 1`;
  return [...changes, next].join(', ');
}

/** Stores who writes, where the collection leaves a trace. */
function traced(action: 'changed' | 'removed', { trace, slots }: Parts) {
  if (!trace) return '';
  const last = slots.push('actor', 'actorTenant', 'request');
  return trace.store(action, '"#found", written', writerAt(last - 2));
}

/** A trigger of a module may have changed the relation. */
function unlessOthers({ table, given }: Parts) {
  const conditions = table.copied.map((column) => {
    const changes = `${given('changes')}::jsonb`;
    const member = literal(column.member);
    const by = table.column(`${column.path?.by}`);
    return unlessOvertaken(
      `id is not null and ${changes} ? ${member} and ${by.text} is not distinct from ${changes} ->> ${literal(by.member)} and ${column.text} is distinct from ${changes} ->> ${member}`,
    );
  });
  return conditions.length > 0 ? ` where ${conditions.join(' and ')}` : '';
}
