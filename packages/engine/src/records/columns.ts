import { p, type UniversalPropertyOptionsBuilder } from '@mikro-orm/core';
import type { Static, TObject, TSchema } from 'typebox';
import { ofTenant } from '../database/tenant-keys.ts';
import { ofRelation, type Path } from '../database/through.ts';
import { int64Column } from '../validation/kinds.ts';
import { longestOf } from '../validation/list-query.ts';
import { initialValue, mostGiven, ofKind } from '../validation/rules.ts';
import { mapMembers, memberOf, nullable } from '../validation/schemas.ts';

type ColumnBuilder<Name, Value> = UniversalPropertyOptionsBuilder<
  Value,
  Name extends keyof Assigned ? Assigned[Name] : object,
  never
>;

/** What a creation does not give. */
export interface Assigned {
  id: { primary: true; autoincrement: true };
  version: { version: true };
}

/**
 * MikroORM's properties for the members of an item, such as
 * `p.text().nullable()`. The database assigns the `id`, and each change
 * increments the `version`. An entity may replace others by properties written
 * by hand, such as relations.
 *
 * @param tenant the member that has the tenant of a row
 * @example properties: { ...columnsOf(toySchema), ownerId: () => ... }
 */
export function columnsOf<Schema extends TObject>(
  { properties }: Schema,
  tenant?: string,
) {
  const columns = mapMembers<TSchema, unknown>(properties, (member, name) =>
    propertyOf(name, member, name === tenant),
  );
  return columns as {
    [Member in keyof Static<Schema>]: ColumnBuilder<
      Member,
      Static<Schema>[Member]
    >;
  };
}

/** A member of the row that a relation refers to. */
export interface Through extends Path {
  /** That of the member. */
  readonly schema: TSchema;
}

/** Those that are filters and orders only, and that the database keeps. */
export function columnsThrough<Name extends string>(
  through: Partial<Record<Name, Through>> = {},
) {
  const columns = mapMembers<Through, unknown>(
    through as Record<string, Through>,
    ({ by, member, schema }, name) => {
      const column = propertyOf(name, nullable(schema), false);
      const { '~options': options } = column as { '~options': object };
      const copied = { [ofRelation]: { by, member }, defaultRaw: undefined };
      Object.assign(options, copied);
      return column;
    },
  );
  return columns as { [Member in Name]: ColumnBuilder<Member, unknown> };
}

function propertyOf(name: string, schema: TSchema, isTenant: boolean) {
  if (name === 'id') return int64Column().primary().autoincrement();
  if (name === 'version') return p.integer().version();
  const { kind, schema: member, isNullable } = memberOf(schema);
  const column = kind.column(member);
  // MikroORM would copy an object.
  const { [initialValue]: defaultRaw } = member;
  Object.assign(column['~options'], {
    [ofKind]: () => kind,
    [mostGiven]: longestOf(schema),
    ...(defaultRaw && { defaultRaw }),
    ...(isTenant && { [ofTenant]: true }),
  });
  return isNullable ? column.nullable() : column;
}
