import { type TObject, type TSchema, Type } from 'typebox';
import { int64Schema, moment, nullable, textSchema } from '../../storage/input/check.ts';
import type { Column } from '../../storage/records/table.ts';

/**
 * What an item of a file must be: what a creation takes, and what the service sets by itself otherwise. Its id is kept,
 * or not looked at.
 */
export function itemSchemas(columns: readonly Column[], input: TObject): Record<'keep' | 'new', TObject> {
  const members = Object.fromEntries(
    columns.map((column) => [column.member, input.properties[column.member] ?? schemaOf(column)]),
  );
  const { id: _, ...others } = members;
  return { keep: Type.Object(members), new: Type.Object(others) };
}

function schemaOf({ member, type, isNullable, fallback }: Column): TSchema {
  const schema = plainSchema(type);
  const whole = isNullable ? nullable(schema) : schema;
  return member === 'id' || !(isNullable || fallback) ? whole : Type.Optional(whole);
}

function plainSchema(type: string): TSchema {
  const description = 'As the service answers it.';
  if (type === 'bigint') return int64Schema({ description });
  if (type === 'int') return Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 });
  if (type === 'smallint') return Type.Integer({ minimum: -(2 ** 15), maximum: 2 ** 15 - 1 });
  if (type === 'boolean') return Type.Boolean();
  if (type === 'timestamptz') return moment({ description });
  if (type === 'double precision') return Type.Number();
  return textSchema({ description });
}
