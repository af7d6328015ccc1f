import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { StoreError } from '../../errors.ts';
import type { Int64 } from './int64.ts';
import { isRecord } from './json.ts';
import { ruleOf } from './rules.ts';

/**
 * A TypeBox schema describes each input once: OpenAPI shows it, `checker` validates by it, and TypeScript derives its type
 * from it. A schema with parts that cannot be validated is rejected at start.
 */

declare const isChecked: unique symbol;

/** A validated value: a service accepts nothing else. */
export type Checked<Value> = Value & { readonly [isChecked]: true };

/** The validated input of a schema: what a service accepts. */
export type Input<Schema extends TSchema> = Checked<Static<Schema>>;

/** int64 on the wire: a JSON integer, exact to the last digit. */
export function int64Schema(options: { description: string; examples?: number[] }) {
  return Type.Unsafe<Int64>({ type: 'integer', format: 'int64', ...options });
}

/**
 * Text that PostgreSQL can store.
 *
 * @param options `maxLength` is in characters (Unicode code points), as JSON Schema counts them
 */
export function textSchema(options: { maxLength?: number; description: string; examples?: string[] }) {
  return Type.String({ ...options, maxLength: options.maxLength ?? 1000 });
}

// 100 items with this many characters take up to 16 MiB, because JSON writes a character as six bytes at most. No later
// code counts bytes.
const maxItemLength = 27_962;

/** A date and time: RFC 3339, section 5.6, to the millisecond. */
export function moment(options: { description: string; examples?: string[] }) {
  return Type.Unsafe<Date>({ type: 'string', format: 'date-time', ...options });
}

/** The same schema, or null. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  const { allOf = [schema], ...rest } = schema as TSchema & { allOf?: TSchema[] };
  const isNamed = '$id' in schema || 'allOf' in schema;
  // The serialiser writes a bigint with `nullable`, but not inside `anyOf`. A `$ref` may have no siblings.
  const orNull = isNamed
    ? { ...('allOf' in schema && rest), anyOf: [...allOf, { type: 'null' }] }
    : { ...schema, nullable: true };
  return Type.Unsafe<Static<Schema> | null>(orNull);
}

/** One of the values of an enumeration, as a named component. */
export function enumSchema<Value extends string>(id: string, values: Record<string, Value>, description: string) {
  return Type.Unsafe<Value>({ $id: id, type: 'string', enum: Object.values(values), description });
}

/** Refers to a named schema, and describes its meaning here. */
export function use<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Unsafe<Static<Schema>>({ allOf: [schema], description });
}

/** A member that clients may omit; for the service it is always present. */
export function withDefault<Schema extends TSchema>(schema: Schema, value: Static<Schema>): Schema {
  return Type.Optional({ ...schema, default: value }) as unknown as Schema;
}

export interface CheckOptions {
  /** For query strings and GraphQL: integers may be decimal digits, and null counts as absent. */
  isText?: boolean;
}

/**
 * Compiles the schema of an object.
 *
 * @returns a function that throws StoreError BAD_USER_INPUT, naming every fault. It drops members that the schema does
 *   not name, and applies defaults to absent ones.
 * @throws Error for a schema with parts that cannot be validated, or whose texts could make a page larger than 16 MiB
 */
export function checker<Schema extends TObject>(schema: Schema, { isText = false }: CheckOptions = {}) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(([name, member]) => ({
    name,
    rule: ruleOf(member, isText),
    isRequired: required.has(name),
    default: (member as { default?: unknown }).default,
  }));
  const length = members.reduce((sum, { rule }) => sum + (rule.maxLength ?? 0), 0);
  if (length > maxItemLength) {
    const texts = members.filter(({ rule }) => rule.maxLength).map(({ name }) => name);
    throw new Error(
      `A page could exceed 16 MiB: ${texts.join(' and ')} have up to ${length} characters in all; at most ${maxItemLength} are allowed.`,
    );
  }
  return (input: unknown): Checked<Static<Schema>> => {
    if (!isRecord(input)) {
      throw new StoreError('BAD_USER_INPUT', 'The body must be a JSON object.');
    }
    const faults: string[] = [];
    const output: Record<string, unknown> = {};
    for (const { name, rule, isRequired, default: otherwise } of members) {
      const given = Object.hasOwn(input, name) ? input[name] : undefined;
      const value = given === undefined || (isText && given === null && !isRequired) ? otherwise : given;
      if (value === undefined && !isRequired) continue;
      const read = value === undefined ? undefined : rule.read(value);
      if (read !== undefined) output[name] = read;
      else if (value === undefined) faults.push(`${name} is required`);
      // Only a query string turns a repeated member into an array.
      else if (isText && Array.isArray(value)) faults.push(`${name} must be given once`);
      else faults.push(`${name} must be ${rule.describe(value)}`);
    }
    if (faults.length > 0) throw new StoreError('BAD_USER_INPUT', `${faults.join('; ')}.`);
    return output as Checked<Static<Schema>>;
  };
}
