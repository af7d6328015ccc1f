import { parseStoredJson } from '@animal-store/exact-json';
import {
  BigIntType,
  JsonType,
  p,
  type UniversalPropertyOptionsBuilder,
} from '@mikro-orm/core';
import type { Static, TObject, TSchema } from 'typebox';
import { int64FromDigits } from '../validation/int64.ts';
import { mapMembers, memberOf } from '../validation/schemas.ts';

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

/** In memory, an int64 of an entity is that of an item. */
class Int64Type extends BigIntType<'bigint'> {
  constructor() {
    super('bigint');
  }

  override convertToJSValue(digits: unknown): bigint {
    return int64FromDigits(`${digits}`) as bigint;
  }

  override toJSON(value: unknown): bigint {
    return value as bigint;
  }
}

/** JSON with exact integers, of which pg would round some. */
class ExactJsonType extends JsonType {
  override convertToJSValueSQL(column: string): string {
    return `${column}::text`;
  }

  override convertToJSValue(text: string): unknown {
    return parseStoredJson(text);
  }
}

/**
 * MikroORM's properties for the members of an item, such as
 * `p.text().nullable()`. The database assigns the `id`, and each change
 * increments the `version`. An entity may replace others by properties written
 * by hand, such as relations.
 *
 * @example properties: { ...columnsOf(toySchema), ownerId: () => ... }
 */
export function columnsOf<Schema extends TObject>({ properties }: Schema) {
  const columns = mapMembers<TSchema, unknown>(properties, (member, name) =>
    propertyOf(name, member),
  );
  return columns as {
    [Member in keyof Static<Schema>]: ColumnBuilder<
      Member,
      Static<Schema>[Member]
    >;
  };
}

function propertyOf(name: string, schema: TSchema) {
  if (name === 'id') return p.type(Int64Type).primary().autoincrement();
  if (name === 'version') return p.integer().version();
  const { kind, isNullable, values, digits } = memberOf(schema);
  const column = {
    int64: () => p.type(Int64Type),
    decimal: () => p.decimal().precision(digits[0]).scale(digits[1]),
    moment: p.datetime,
    date: p.date,
    uuid: p.uuid,
    json: () => p.type(ExactJsonType),
    texts: p.array,
    enum: () => p.enum(values),
    integer: p.integer,
    number: p.double,
    boolean: p.boolean,
    string: p.text,
  }[kind]();
  return isNullable ? column.nullable() : column;
}
